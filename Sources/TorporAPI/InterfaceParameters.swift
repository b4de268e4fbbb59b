// SPDX-License-Identifier: Apache-2.0

import Varlink

extension ManagerInterface {
    /// The names of the parameters of each method, parsed from ``description``.
    private static let parameters: [String: [String]] = {
        var parameters: [String: [String]] = [:]
        // Split only at "method" at the beginning of a line, because a comment may contain that word too.
        for text in description.split(separator: "\nmethod ").dropFirst() {
            let name = text.prefix { $0 != "(" }
            var depth = 0
            var names: [String] = []
            var word = ""
            scan: for character in text.dropFirst(name.count + 1) {
                switch character {
                case "(": depth += 1
                case ")" where depth == 0: break scan
                case ")": depth -= 1
                case ":" where depth == 0: names.append(word)
                case ",": word = ""
                case " ", "\n": break
                default: word.append(character)
                }
            }
            parameters[String(name)] = names
        }
        return parameters
    }()

    /// The parameters of all verbs together, because a verb ignores the parameters of other verbs.
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
