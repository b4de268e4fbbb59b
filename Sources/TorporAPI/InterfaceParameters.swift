// SPDX-License-Identifier: Apache-2.0

import Varlink

extension ManagerInterface {
    /// The parameters of each method, as ``description`` has them.
    private static let parameters: [String: [String]] = {
        var parameters: [String: [String]] = [:]
        // A comment may have the word too; a method stands at the beginning of its line.
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

    /// The same of all verbs together: those that a verb does not have are ignored by it.
    private static let ofVerbs = Verb.allCases.flatMap { parameters[$0.rawValue] ?? [] }

    /// Refuses a parameter that the method does not have: what it was to mean would be missed without a word. A method that
    /// is not known itself is not looked at.
    static func requireKnown(_ json: JSON, of method: String) throws(FieldError) {
        guard let own = parameters[method] else { return }
        let known = Verb(rawValue: method) == nil ? own : ofVerbs
        guard let unknown = json.objectValue?.members.first(where: { !known.contains($0.name) }) else { return }
        let takes = own.isEmpty ? "none" : own.joined(separator: ", ")
        throw FieldError(field: unknown.name, problem: "is not a parameter of \(method), which takes \(takes)")
    }
}
