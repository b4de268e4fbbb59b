// SPDX-License-Identifier: Apache-2.0

import Varlink

extension ManagerInterface {
    /// The parameters of each method, as ``description`` has them.
    private static let parameters: [String: [String]] = {
        var parameters: [String: [String]] = [:]
        // The word may be in a comment too; a method is at the beginning of its line.
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

    /// The parameters of all verbs together: a verb ignores those that it does not have.
    private static let ofVerbs = Verb.allCases.flatMap { parameters[$0.rawValue] ?? [] }

    /// Refuses a parameter that the method does not have: it would be ignored silently. An unknown method is not
    /// checked.
    static func requireKnown(_ json: JSON, of method: String) throws(FieldError) {
        guard let own = parameters[method] else { return }
        let known = Verb(rawValue: method) == nil ? own : ofVerbs
        guard let unknown = json.objectValue?.members.first(where: { !known.contains($0.name) }) else { return }
        let takes = own.isEmpty ? "none" : own.joined(separator: ", ")
        throw FieldError(field: unknown.name, problem: "is not a parameter of \(method), which takes \(takes)")
    }
}
