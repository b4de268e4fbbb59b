// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux

extension CommandLineArguments {
    /// Former names of verbs, which still work but are not documented. Also short names of the verbs about activities.
    private static let earlier = [
        "policies": ["policy", "list"], "delegate": ["app", "delegate"], "task": ["app", "task"],
        "activities": ["activity", "list"], "continue": ["activity", "continue"],
        "state": ["app", "state"], "subscribe": ["app", "subscribe"],
    ]

    /// Whether the words name a current verb that begins like a former name of another verb. For example, `state
    /// export` is a verb of its own and does not mean `app state export`.
    private static func isNew(_ words: ArraySlice<String>) -> Bool {
        guard words.first == "state" else { return false }
        let formerly = ["save", "restore", "discard"]
        return !words.dropFirst().contains { formerly.contains($0) }
    }

    /// Rewrites arguments for the parser: moves options that come before the verb behind it, and replaces former names
    /// of verbs. For example, `--socket X policies` becomes `policy list --socket X`.
    static func parsable(_ arguments: [String]) -> [String] {
        let (moved, rest) = split(arguments)
        guard let first = rest.first, !first.hasPrefix("-") else { return arguments }
        var words = Array(rest)
        let place = first == "help" ? 1 : 0
        let isTopic = place == 1 && words.count == 2 && Help.topic(words[1]) != nil
        if words.indices.contains(place), !isTopic, let names = earlier[words[place]], !isNew(words[place...]) {
            words.replaceSubrange(place...place, with: names)
        }
        guard !moved.isEmpty else { return words }
        let verb = Torpor.verb(in: words)
        return words.prefix(verb) + moved + words.dropFirst(verb)
    }
}
