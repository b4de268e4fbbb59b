// SPDX-License-Identifier: Apache-2.0

/// One entry of `paths`: something in the file system that tells an app, and wakes it.
public struct PathTrigger: Sendable, Hashable {
    /// What is looked for; the key that the path is written under.
    public enum Condition: String, Sendable, Hashable, CaseIterable {
        /// There is something at the path.
        case exists
        /// It was written to and closed, replaced, made or removed; of a directory, or something in it.
        case changed
        /// As ``changed``, and at each write.
        case modified
        /// It is a directory with something in it.
        case notEmpty = "not_empty"

        /// Whether it holds for a time, rather than happens at one.
        public var isLevel: Bool { self == .exists || self == .notEmpty }
    }

    /// What events, and the app, know it by.
    public var name: String
    /// What is looked for.
    public var condition: Condition
    /// Absolute; a pattern as glob(7) has them.
    public var path: String
    /// How the app is woken.
    public var wake: WakeManner = .background

    /// A trigger that wakes into the background.
    public init(name: String, _ condition: Condition, _ path: String) {
        self.name = name
        self.condition = condition
        self.path = path
    }
}

extension PathTrigger {
    static func read(_ context: Context, _ node: Node) -> PathTrigger? {
        var draft = Draft()
        guard case .table = node.value else { return context.expected("a table such as { changed = \"/path\" }", node) }
        Read.table(context, node, keys, into: &draft)
        guard let found = draft.found.first, draft.found.count == 1 else {
            context.error(
                "needs exactly one of exists, changed, modified and not_empty, with the path to watch",
                at: node.position
            )
            return nil
        }
        var trigger = PathTrigger(name: draft.name ?? found.path, found.condition, found.path)
        trigger.wake = draft.wake
        return trigger
    }

    /// What a table says before it is known to be whole.
    struct Draft {
        var name: String?
        var found: [(condition: Condition, path: String)] = []
        var wake = WakeManner.background
    }

    static let keys: [Key<Draft>] =
        [
            .optional("name", \.name, Read.text),
            .value("wake", \.wake) { Read.choice($0, $1) },
        ]
        + Condition.allCases.map { condition in
            Key(condition.rawValue) { context, node, draft in
                if let path = Read.path(context, node) { draft.found.append((condition, path)) }
            }
        }
}

extension PathTrigger: Written {
    var written: String? {
        var text = "\(condition.rawValue) \(path)"
        if name != path { text = "\(name): \(text)" }
        return wake == .background ? text : text + ", wake \(wake.rawValue)"
    }
}
