// SPDX-License-Identifier: Apache-2.0

/// In the sources, `%i`, `%u` and `%f` are text, but Torpor would take them for placeholders: of an instance's number, or,
/// as a whole argument, of a URL or file.
extension ImportedConfiguration {
    /// Keeps such texts as they are. Programs of supervisord are finished already, and in units `%i` is what the user
    /// has yet to replace (``SystemdService``).
    mutating func keepPercents() {
        guard kind != .supervisord else { return }
        let isUnit = kind == .systemd || kind == .quadlet
        for index in programs.indices where programs[index].isTranslated {
            programs[index].keepPercents(hasInstances: !isUnit && programs[index]["instances"] != nil)
        }
    }
}

extension ImportedProgram {
    /// Has a shell insert each `%` that would begin a placeholder. Then puts `%i` in the place of ``Late/number``.
    fileprivate mutating func keepPercents(hasInstances: Bool) {
        keepPercentsOfCommand(hasInstances: hasInstances)
        guard hasInstances else { return }
        for (key, value) in keys.sorted(by: { $0.key < $1.key }) {
            if Self.hasNumber(value) {
                remark("\(key) has %i, which Torpor replaces by the number of the instance: the source has it as text")
            }
            keys[key] = Self.numbered(value)
        }
    }

    private mutating func keepPercentsOfCommand(hasInstances: Bool) {
        guard case .array(let elements)? = keys["exec"] else { return }
        let words = elements.compactMap { element -> String? in
            if case .string(let word) = element { Late.literal(word, hasInstances: hasInstances) } else { nil }
        }
        var variables: [(name: String, value: String)] = []
        var rest = OrderedTable<TOMLValue>()
        if hasInstances, case .table(let table)? = keys["environment"] {
            for (name, value) in table {
                if case .string(let text) = value, Self.hasNumber(value) {
                    variables.append((name, Late.literal(text, hasInstances: true)))
                } else {
                    rest[name] = value
                }
            }
        }
        guard !variables.isEmpty || words.contains(where: Late.isIn) else { return }
        guard keys["container"] == nil else {
            return remark(
                "its command has %u or %f as an argument, or %i, in whose place Torpor puts a URL or the instance's number: "
                    + "let a shell of the image write the %, as in sh -c \"exec program %''u\""
            )
        }
        keys["exec"] = .strings(Late.command(words, variables: variables))
        if !variables.isEmpty { keys["environment"] = rest.isEmpty ? nil : .table(rest) }
    }

    /// Whether a text of the value has the placeholder for an instance's number.
    private static func hasNumber(_ value: TOMLValue) -> Bool {
        switch value {
        case .string(let text):
            Late.literal(text, hasInstances: true).unicodeScalars.contains(Late.percent) && text != "%u" && text != "%f"
        case .array(let elements): elements.contains(where: hasNumber)
        case .table(let members): members.contains { hasNumber($0.value) }
        case .integer, .number, .boolean: false
        }
    }

    /// The value with `%i` in the place of ``Late/number``.
    private static func numbered(_ value: TOMLValue) -> TOMLValue {
        switch value {
        case .string(let text): .string(text.replacing(String(Character(Late.number)), with: "%i"))
        case .array(let elements): .array(elements.map(numbered))
        case .table(let members):
            .table(OrderedTable(members.map { (key: $0.key, value: numbered($0.value)) }))
        case .integer, .number, .boolean: value
        }
    }
}
