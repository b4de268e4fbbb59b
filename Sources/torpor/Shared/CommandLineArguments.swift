/// Options before the verb, which the parser takes only after it.
enum CommandLineArguments {
    /// `--socket X list` becomes `list --socket X`; everything else stays.
    static func reordered(_ arguments: [String]) -> [String] {
        var moved: [String] = []
        var rest = arguments[...]
        while let first = rest.first {
            if first == "--json" || first.hasPrefix("--socket=") {
                moved.append(rest.removeFirst())
            } else if first == "--socket", rest.count >= 2 {
                moved.append(contentsOf: rest.prefix(2))
                rest = rest.dropFirst(2)
            } else {
                break
            }
        }
        guard let verb = rest.first, !moved.isEmpty, !verb.hasPrefix("-") else { return arguments }
        // A group takes them behind its own verb.
        let count =
            ["policy", "state", "task"].contains(verb) && rest.dropFirst().first?.hasPrefix("-") == false ? 2 : 1
        return rest.prefix(count) + moved + rest.dropFirst(count)
    }
}
