// SPDX-License-Identifier: Apache-2.0

import Varlink
import WireText

extension ManagerInterface {
    /// The names of the parameters of each method, parsed from ``description``.
    private static let parameters: [String: [String]] = {
        var parameters: [String: [String]] = [:]
        // Bytes, not characters: a supervisor that just started answers its first call only after this.
        let text = Array(description.utf8)
        // Only "method" at the beginning of a line, because a comment may contain that word too.
        let start = Array("method ".utf8)
        var place = 0
        while place < text.count {
            guard text[place...].starts(with: start) else {
                place = text[place...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? text.count
                continue
            }
            let name = text[(place + start.count)...].prefix { $0 != UInt8(ascii: "(") }
            place = name.endIndex + 1
            var depth = 0
            var names: [String] = []
            var word: [UInt8] = []
            scan: while place < text.count {
                switch text[place] {
                case UInt8(ascii: "("): depth += 1
                case UInt8(ascii: ")") where depth == 0: break scan
                case UInt8(ascii: ")"): depth -= 1
                case UInt8(ascii: ":") where depth == 0: names.append(String(wire: word))
                case UInt8(ascii: ","): word.removeAll(keepingCapacity: true)
                case UInt8(ascii: " "), UInt8(ascii: "\n"): break
                default: word.append(text[place])
                }
                place += 1
            }
            parameters[String(wire: name)] = names
        }
        return parameters
    }()

    /// The names of the parameters of all verbs. A call of a verb may contain any of them, because a verb ignores those
    /// of the other verbs.
    private static let ofVerbs = Verb.allCases.flatMap { parameters[$0.rawValue] ?? [] }

    /// Throws for a parameter that the method does not have, which would otherwise be ignored silently. The
    /// parameters of an unknown method are not checked.
    static func requireKnown(_ json: JSON, of method: String) throws(FieldError) {
        guard let own = parameters[method] else { return }
        let known = Verb(rawValue: method) == nil ? own : ofVerbs
        guard let unknown = json.objectValue?.members.first(where: { !known.contains($0.name) }) else { return }
        let takes = own.isEmpty ? "none" : own.joined(separator: ", ")
        throw FieldError(field: unknown.name, problem: "is not a parameter of \(method), which takes \(takes)")
    }
}
