// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// Translates the values of supervisord's keys. If a user writes such a key, the error can then suggest Torpor's key
/// with the user's own value instead of an example.
enum ForeignValues {
    /// A hint with the key and the value to write. Nil for other keys, and for values that supervisord does not accept
    /// either.
    static func hint(_ key: String, _ value: Node.Value) -> String? {
        written(key.lowercased(), value).map { "write " + $0 }
    }

    private static func written(_ key: String, _ value: Node.Value) -> String? {
        switch key {
        case "command":
            guard case .string(let line) = value, !line.isEmpty else { return nil }
            return "exec = " + Read.array(of: line)
        case "stopsignal": return signal(value).map { "stop_signal = \(quoted($0))" }
        case "stopwaitsecs": return seconds(value).map { "grace = \($0)" }
        case "startsecs": return seconds(value).map { "stable_after = \($0)" }
        case "startretries": return number(value).map { "restart_backoff = { limit = \($0) }" }
        case "numprocs": return number(value).map { "instances = \($0)" }
        case "stdout_logfile_backups": return number(value).map { "log_max_files = \($0)" }
        case "stdout_logfile_maxbytes": return size(value).map { "log_max_size = \(quoted($0))" }
        case "exitcodes": return numbers(value).map { "success_exit_status = [\($0.joined(separator: ", "))]" }
        case "autostart": return flag(value).map { "launch = \(quoted($0 ? "foreground" : "on-demand"))" }
        case "autorestart":
            if case .string(let text) = value, text.lowercased() == "unexpected" { return "restart = \"on-failure\"" }
            return flag(value).map { "restart = \(quoted($0 ? "always" : "never"))" }
        default: return nil
        }
    }

    private static func number(_ value: Node.Value) -> Int64? {
        let number: Int64? =
            switch value {
            case .integer(let number): number
            case .string(let text): Int64(text)
            case .table, .array, .double, .boolean, .date: nil
            }
        return number.flatMap { $0 > 0 ? $0 : nil }
    }

    private static func seconds(_ value: Node.Value) -> String? {
        if let number = number(value) { return quoted("\(number)s") }
        guard case .string(let text) = value, (try? Quantity.duration(text)) != nil else { return nil }
        return quoted(text)
    }

    private static func signal(_ value: Node.Value) -> String? {
        let name: String
        switch value {
        case .string(let text): name = text
        case .integer(let number): name = "\(number)"
        case .table, .array, .double, .boolean, .date: return nil
        }
        return Signal.number(named: name).map(Signal.name)
    }

    /// A size as text. The units of supervisord are powers of 1024 (datatypes.py, byte_size).
    private static func size(_ value: Node.Value) -> String? {
        if let number = number(value) { return "\(number)B" }
        guard case .string(let text) = value else { return nil }
        let units = ["KB": "KiB", "MB": "MiB", "GB": "GiB"]
        guard let unit = units[text.suffix(2).uppercased()], let number = Int64(text.dropLast(2)), number > 0 else {
            return nil
        }
        return "\(number)\(unit)"
    }

    private static func numbers(_ value: Node.Value) -> [String]? {
        let numbers: [Int64?]
        switch value {
        case .integer(let number): numbers = [number]
        case .string(let text): numbers = text.split { $0 == "," || $0 == " " }.map { Int64($0) }
        case .array(let nodes):
            numbers = nodes.map { node -> Int64? in
                guard case .integer(let number) = node.value else { return nil }
                return number
            }
        case .table, .double, .boolean, .date: return nil
        }
        let known = numbers.compactMap { $0 }
        // An exit status has 8 bits.
        guard !known.isEmpty, known.count == numbers.count, known.count <= 256 else { return nil }
        return known.map { "\($0)" }
    }

    private static func flag(_ value: Node.Value) -> Bool? {
        switch value {
        case .boolean(let flag): flag
        case .string("true"), .string("yes"), .string("on"), .string("1"): true
        case .string("false"), .string("no"), .string("off"), .string("0"): false
        case .string, .table, .array, .integer, .double, .date: nil
        }
    }
}
