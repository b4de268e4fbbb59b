// SPDX-License-Identifier: Apache-2.0

public import Lifecycle
import Linux
import WireText

/// A value that can be shown in the syntax of the configuration. A string is shown without quotes.
protocol Written {
    /// The value as it is written in the configuration; `nil` if the key is not set, or is `"none"`.
    var written: String? { get }
}

extension String: Written {
    var written: String? { self }
}

extension Bool: Written {
    var written: String? { self ? "true" : "false" }
}

extension Int: Written {
    var written: String? { "\(self)" }
}

extension Int32: Written {
    var written: String? { "\(self)" }
}

extension Duration: Written {
    var written: String? { Quantity.text(self) }
}

extension Optional: Written where Wrapped: Written {
    var written: String? { flatMap(\.written) }
}

extension Array: Written where Element: Written {
    var written: String? { "[" + map { quotedWhole($0.written ?? "none") }.joined(separator: ", ") + "]" }
}

extension Written where Self: RawRepresentable, RawValue == String {
    var written: String? { rawValue }
}

/// The whole text in quotes, not shortened.
private func quotedWhole(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": result += "\\" + String(scalar)
        case "\n": result += "\\n"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result + "\""
}

extension LaunchMode: Written {}
extension ProcessSelection: Written {}
extension SuspendMethod: Written {}
extension LogTarget: Written {}
extension LockRule: Written {}
extension UnlockRule: Written {}
extension BackgroundMode: Written {}
extension ExitRule: Written {}
extension FocusRule: Written {}
extension InterruptionSource: Written {}
extension OrphanRule: Written {}
extension LogLevel: Written {}
extension PolicyIsolation: Written {}
extension PolicyMode: Written {}

extension SessionRule: Written {
    var written: String? {
        switch self {
        case .auto: "auto"
        case .none: nil
        case .seat(let name): name
        case .id(let id): id
        }
    }
}

extension StandardError: Written {
    var written: String? {
        switch self {
        case .log: "log"
        case .file(let path): path
        }
    }
}

extension StandardInput: Written {
    var written: String? {
        switch self {
        case .null: "null"
        case .file(let path): path
        }
    }
}

extension EnvironmentFileReference: Written {
    var written: String? { (isOptional ? "-" : "") + path }
}

extension HookCommand: Written {
    var written: String? {
        let words = command.joined(separator: " ")
        return deadline == .seconds(30) ? words : words + " (deadline \(deadline.written ?? "none"))"
    }
}

extension FailureCommand: Written {
    var written: String? {
        var notes: [String] = []
        if deadline != .seconds(30) { notes.append("deadline \(Quantity.text(deadline))") }
        if each { notes.append("each") }
        return command.joined(separator: " ") + (notes.isEmpty ? "" : " (\(notes.joined(separator: ", ")))")
    }
}

extension ReadySpecification: Written {
    var written: String? {
        switch self {
        case .exec: return "exec"
        case .notify: return "notify"
        case .delegate: return "delegate"
        case .probe(let probe): return probe.written(Probe(probe.kind))
        }
    }
}

extension Probe {
    /// The probe as text. Its interval and timeout are included if they differ from those of the probe `usual`.
    fileprivate func written(_ usual: Probe) -> String {
        var text = text
        if interval != usual.interval { text += ", interval \(Quantity.text(interval))" }
        if timeout != usual.timeout { text += ", timeout \(Quantity.text(timeout))" }
        return text
    }
}

extension HealthSpecification: Written {
    var written: String? {
        let usual = HealthSpecification(probe.kind)
        return probe.written(usual.probe) + (failures == usual.failures ? "" : ", failures \(failures)")
    }
}

/// Formats values that are stored in another form than they are written in the configuration.
enum Write {
    /// Formats a size in the largest unit (B, KiB, MiB, …) in which it is a whole number.
    package static func size(_ bytes: UInt64) -> String {
        for (unit, size) in [("TiB", UInt64(1) << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        where bytes >= size && bytes % size == 0 {
            return "\(bytes / size)\(unit)"
        }
        return "\(bytes)B"
    }

    /// Formats a limit on processor time in percent of one processor. `limit` is in thousandths of a percent.
    static func processorLimit(_ limit: Int) -> String {
        if limit == .max { return "none" }
        return limit % 1000 == 0 ? "\(limit / 1000)%" : "\(Double(limit) / 1000)%"
    }

    static func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    static func limit(_ limit: ResourceLimit) -> String {
        func text(_ value: UInt64) -> String { value == .max ? "unlimited" : "\(value)" }
        return limit.soft == limit.hard ? text(limit.soft) : text(limit.soft) + ":" + text(limit.hard)
    }

    package static func value(_ value: ConfigurationValue) -> String {
        switch value {
        case .string(let text): quotedWhole(text)
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        case .boolean(let flag): flag ? "true" : "false"
        case .date(let text): text
        case .array(let elements): "[" + elements.map(Self.value).joined(separator: ", ") + "]"
        case .table(let members):
            "{ "
                + members.sorted { $0.key < $1.key }.map { "\($0.key) = \(Self.value($0.value))" }
                .joined(separator: ", ") + " }"
        }
    }
}
