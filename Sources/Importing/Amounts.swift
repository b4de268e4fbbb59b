// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Converts durations and sizes from the syntax of other programs to Torpor's.
enum Amounts {
    /// A duration in Torpor's syntax; nil if it is negative or longer than Torpor accepts.
    static func duration(seconds: Double) -> String? {
        guard seconds >= 0, seconds < 3_153_600_000 else { return nil }
        return Quantity.text(.microseconds(Int64((seconds * 1_000_000).rounded())))
    }

    /// Parses a number with a unit, or several of these (`1m30s`), to seconds. `alone` is the unit, in seconds, of a
    /// number without a unit; if it is nil, such a number is invalid.
    static func seconds(_ text: String, units: [String: Double], alone: Double?) -> Double? {
        var total = 0.0
        var rest = text.trimmed[...]
        guard !rest.isEmpty else { return nil }
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber || $0 == "." }
            guard let number = Double(digits), number.isFinite else { return nil }
            rest = rest.dropFirst(digits.count).drop { $0 == " " }
            let name = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(name.count).drop { $0 == " " }
            guard let unit = name.isEmpty ? alone : units[String(name)] else { return nil }
            total += number * unit
        }
        return total
    }

    /// Parses a duration of a compose file (Go's time.ParseDuration) to seconds. A number without a unit is invalid in
    /// compose files, but counts as seconds here.
    static func compose(_ text: String) -> Double? {
        seconds(
            text,
            units: ["us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800],
            alone: 1
        )
    }

    /// Parses a time span of systemd.time(7) to seconds; a number without a unit counts as seconds.
    static func systemd(_ text: String) -> Double? {
        seconds(text, units: systemdUnits, alone: 1)
    }

    private static let systemdUnits: [String: Double] = [
        "us": 1e-6, "usec": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1, "sec": 1, "second": 1, "seconds": 1,
        "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
        "d": 86_400, "day": 86_400, "days": 86_400, "w": 604_800, "week": 604_800, "weeks": 604_800,
        "M": 2_629_800, "month": 2_629_800, "months": 2_629_800, "y": 31_557_600, "year": 31_557_600,
        "years": 31_557_600,
    ]

    /// Parses a number of bytes with a unit. All units are powers of 1024.
    static func bytes(_ text: String) -> UInt64? {
        let lower = text.trimmed.lowercased()
        let digits = lower.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        guard let number = Double(digits), number >= 0 else { return nil }
        var unit = lower.dropFirst(digits.count).trimmed
        if unit.hasSuffix("ib") { unit.removeLast(2) } else if unit.hasSuffix("b") { unit.removeLast() }
        let powers: [String: Double] = ["": 0, "k": 1, "m": 2, "g": 3, "t": 4]
        guard let power = powers[unit] else { return nil }
        var bytes = number
        for _ in 0..<Int(power) { bytes *= 1024 }
        return bytes < 9e18 ? UInt64(bytes) : nil
    }

    /// Formats a size in the largest unit of B, KiB, MiB and so on in which it is a whole number.
    static func size(_ bytes: UInt64) -> String {
        for (unit, size) in [("TiB", UInt64(1) << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        where bytes >= size && bytes % size == 0 {
            return "\(bytes / size)\(unit)"
        }
        return "\(bytes)B"
    }

    /// A file mode of a YAML file as octal digits, for podman. A number without a zero before it is decimal.
    static func mode(_ node: DataNode) -> String? {
        guard case .scalar(let text, let isPlain) = node.value else { return nil }
        if text.hasPrefix("0o") { return UInt16(text.dropFirst(2), radix: 8).map { String($0, radix: 8) } }
        let isDecimal = isPlain && !text.hasPrefix("0")
        return UInt16(text, radix: isDecimal ? 10 : 8).map { String($0, radix: 8) }
    }

    /// Parses a boolean by Go's rules (strconv.ParseBool), which docker and podman use; nil for other texts.
    static func truth(_ text: String) -> Bool? {
        switch text {
        case "1", "t", "T", "true", "TRUE", "True": true
        case "0", "f", "F", "false", "FALSE", "False": false
        default: nil
        }
    }

    /// The name of a signal in capital letters, with the prefix `SIG`. The number of a signal stays as it is.
    static func signal(_ text: String) -> String {
        let name = text.trimmed.uppercased()
        return name.hasPrefix("SIG") || Int(name) != nil ? name : "SIG" + name
    }
}
