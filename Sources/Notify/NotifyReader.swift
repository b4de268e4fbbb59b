// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// The parser for `sd_notify(3)` datagrams, which consist of `KEY=value` lines.
struct NotifyReader {
    private(set) var fields: [NotifyField] = []
    private(set) var warnings: [String] = []

    /// The most bytes of a bad line that a warning quotes.
    private static let quoted = 64
    private static let maximumWarnings = 16

    mutating func read(_ bytes: [UInt8]) {
        var bytes = bytes[...]
        if bytes.count > NotifyMessage.maximumLength {
            warn("the datagram is longer than \(NotifyMessage.maximumLength) bytes: its end was not read")
            bytes = bytes.prefix(NotifyMessage.maximumLength)
        }
        // Some clients send the NUL at the end of their C string too.
        while bytes.last == 0 { bytes.removeLast() }
        var lines = 0
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            lines += 1
            if lines > NotifyMessage.maximumFields {
                warn("the datagram has more than \(NotifyMessage.maximumFields) lines: the rest was not read")
                return
            }
            read(line: line)
        }
        if fdNameMatters, !fields.contains(where: { if case .fdName = $0 { true } else { false } }) {
            warn("FDSTOREREMOVE=1 came without FDNAME: say which descriptors to drop")
        }
    }

    private var fdNameMatters: Bool { fields.contains(.fdStoreRemove) }

    private mutating func read(line: ArraySlice<UInt8>) {
        guard let split = line.firstIndex(of: UInt8(ascii: "=")), split > line.startIndex else {
            warn("\(quote(line)) is not KEY=value: ignored")
            return
        }
        guard !line.contains(0), let key = text(line[..<split]) else {
            warn("\(quote(line)) is not UTF-8: ignored")
            return
        }
        guard let value = text(line[(split + 1)...]) else {
            warn("the value of \(shown(key)) is not UTF-8: ignored")
            return
        }
        read(key: key, value: value)
    }

    private mutating func read(key: String, value: String) {
        switch key {
        case "READY": flag(.ready, key, value)
        case "RELOADING": flag(.reloading, key, value)
        case "STOPPING": flag(.stopping, key, value)
        case "BARRIER": flag(.barrier, key, value)
        case "FDSTORE": flag(.fdStore, key, value)
        case "FDSTOREREMOVE": flag(.fdStoreRemove, key, value)
        case "STATUS": fields.append(.status(cut(value, key)))
        case "BUSERROR", "VARLINKERROR": fields.append(.busError(cut(value, key)))
        case "ERRNO": number(key, value, in: 0...4095) { .errno(Int32($0)) }
        case "EXIT_STATUS": number(key, value, in: 0...255) { .exitStatus(Int32($0)) }
        case "MAINPID": number(key, value, in: 1...UInt64(Int32.max)) { .mainPID(Int32($0)) }
        case "MONOTONIC_USEC": number(key, value, in: 0...NotifyReader.longest) { .monotonicUsec($0) }
        case "WATCHDOG_USEC": number(key, value, in: 0...NotifyReader.longest) { .watchdogUsec($0) }
        case "EXTEND_TIMEOUT_USEC": number(key, value, in: 0...NotifyReader.longest) { .extendTimeoutUsec($0) }
        case "X_TORPOR_TASK_BEGIN": name(key, value) { .taskBegin($0) }
        case "X_TORPOR_TASK_END": name(key, value) { .taskEnd($0) }
        case "X_TORPOR_SNAPSHOT": flag(.showsNew, key, value)
        case "X_TORPOR_CONTAINER":
            let parts = value.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            let number = parts.first.flatMap { Signal.number(named: String($0)) }
            if number == nil, parts.first?.isEmpty == false {
                warn("\(key)=\(shown(value)) does not begin with a signal's name: ignored")
            }
            fields.append(.containerRuns(stopSignal: number, parts.count > 1 ? ImageDigest(String(parts[1])) : nil))
        case "X_TORPOR_DONE": name(key, value) { .done($0) }
        case "WATCHDOG":
            switch value {
            case "1": fields.append(.watchdogPing)
            case "trigger": fields.append(.watchdogTrigger)
            default: warn("WATCHDOG=\(shown(value)) means nothing: send WATCHDOG=1 or WATCHDOG=trigger")
            }
        case "FDNAME":
            if FDName.isValid(value) {
                fields.append(.fdName(value))
            } else {
                warn(
                    "FDNAME=\(shown(value)) is not a valid name: use up to 255 printable ASCII characters except colons"
                )
            }
        case "FDPOLL":
            switch value {
            case "0", "no", "false", "off": fields.append(.fdPoll(false))
            case "1", "yes", "true", "on": fields.append(.fdPoll(true))
            default: warn("FDPOLL=\(shown(value)) means nothing: send FDPOLL=0 to keep closed descriptors")
            }
        case _ where key.utf8.starts(with: "X_TORPOR_".utf8):
            warn("\(shown(key)) means nothing: there are X_TORPOR_TASK_BEGIN, _TASK_END, _SNAPSHOT and _DONE")
        default:
            if let meant = Self.meant(by: key) {
                warn("\(shown(key)) means nothing: did you mean \(meant)?")
            } else {
                fields.append(.unknown(key: cut(key, "a key"), value: cut(value, key)))
            }
        }
    }

    /// Keys that programs write by hand. The others are left to libraries, which write them right.
    private static let keys = [
        "READY", "RELOADING", "STOPPING", "STATUS", "ERRNO", "EXIT_STATUS", "MAINPID", "WATCHDOG", "WATCHDOG_USEC",
        "EXTEND_TIMEOUT_USEC", "MONOTONIC_USEC", "BARRIER", "FDSTORE", "FDSTOREREMOVE", "FDNAME", "FDPOLL",
    ]

    /// The key that another one is a misspelling of: a key in other cases, or with one wrong letter.
    private static func meant(by key: String) -> String? {
        guard key.utf8.count <= 24 else { return nil }
        let upper = key.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 - 32 : $0 }
        return keys.first { isNear(upper, Array($0.utf8)) }
    }

    /// Whether the names are the same but for one letter that is missing, added or wrong, or two that are swapped.
    private static func isNear(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        let same = zip(left, right).prefix { $0.0 == $0.1 }.count
        var (left, right) = (left.dropFirst(same), right.dropFirst(same))
        while let last = left.last, last == right.last {
            left.removeLast()
            right.removeLast()
        }
        if left.count <= 1, right.count <= 1 { return true }
        return left.count == 2 && right.count == 2 && left.first == right.last && left.last == right.first
    }

    /// The longest name of a task or message, in bytes.
    private static let longestName = 128
    /// The largest time in microseconds. A larger value is certainly a mistake, and would overflow the arithmetic of
    /// Duration.
    private static let longest = UInt64(Int64.max)

    private mutating func flag(_ field: NotifyField, _ key: String, _ value: String) {
        if value == "1" {
            fields.append(field)
        } else {
            warn("\(key)=\(shown(value)) means nothing: only \(key)=1 does")
        }
    }

    private mutating func number(
        _ key: String,
        _ value: String,
        in range: ClosedRange<UInt64>,
        _ make: (UInt64) -> NotifyField
    ) {
        let digits = value.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digits, let number = UInt64(value), range.contains(number) else {
            warn(
                "\(key)=\(shown(value)) is not a whole number from \(range.lowerBound) to \(range.upperBound): ignored"
            )
            return
        }
        fields.append(make(number))
    }

    private mutating func name(_ key: String, _ value: String, _ make: (String) -> NotifyField) {
        let plain = value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
        guard !value.isEmpty, value.utf8.count <= NotifyReader.longestName, plain else {
            warn(
                "\(key)=\(shown(value)) is not a valid name: use 1 to \(NotifyReader.longestName) bytes without "
                    + "control characters"
            )
            return
        }
        fields.append(make(value))
    }

    private mutating func warn(_ sentence: String) {
        if warnings.count < NotifyReader.maximumWarnings {
            warnings.append(sentence)
        } else if warnings.count == NotifyReader.maximumWarnings {
            warnings.append("more of this datagram could not be read")
        }
    }

    private mutating func cut(_ value: String, _ key: String) -> String {
        guard value.utf8.count > NotifyMessage.maximumText else { return value }
        warn("\(shown(key)) is longer than \(NotifyMessage.maximumText) bytes: cut")
        // If the cut is in the middle of a character, decoding replaces the rest of it by U+FFFD.
        return String(wire: value.utf8.prefix(NotifyMessage.maximumText))
    }

    private func text(_ bytes: ArraySlice<UInt8>) -> String? {
        String(validWire: bytes)
    }

    private func quote(_ line: ArraySlice<UInt8>) -> String {
        "'" + shown(String(wire: line.prefix(NotifyReader.quoted))) + "'"
    }

    /// The text for a warning, without control characters, which could affect a terminal.
    private func shown(_ value: String) -> String {
        var result = ""
        for scalar in value.unicodeScalars.prefix(NotifyReader.quoted) {
            let control = scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
            result.unicodeScalars.append(control ? "?" : scalar)
        }
        return result
    }
}

/// The names of descriptors in `$LISTEN_FDNAMES`.
public enum FDName {
    /// The name of a descriptor that was stored without a name (sd_pid_notify_with_fds(3)).
    public static let unnamed = "stored"

    /// Whether systemd's `fdname_is_valid` allows the name: it is empty, or has at most 255 printable ASCII characters
    /// and no colon.
    public static func isValid(_ name: String) -> Bool {
        name.utf8.count <= 255 && name.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") }
    }
}
