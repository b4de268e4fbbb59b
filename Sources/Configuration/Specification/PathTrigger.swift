// SPDX-License-Identifier: Apache-2.0

/// An entry of `paths`: a condition on a path in the file system that notifies and wakes an app.
public struct PathTrigger: Sendable, Hashable {
    /// The condition on the path. In the configuration, the condition is written as the key, and the path as its value.
    public enum Condition: String, Sendable, Hashable, CaseIterable {
        /// The path exists.
        case exists
        /// The file was created, removed, replaced, or closed after it was written to. For a directory: one of its
        /// entries was created, removed, replaced, or closed after it was written to.
        case changed
        /// Like ``changed``, but the app is notified of each write, before the file is closed.
        case modified
        /// The path is a directory that is not empty.
        case notEmpty = "not_empty"

        /// Whether the condition is a state that lasts, as opposed to an event.
        public var isLevel: Bool { self == .exists || self == .notEmpty }
    }

    /// The trigger's name, which is part of each event.
    public var name: String
    /// The condition that notifies and wakes the app.
    public var condition: Condition
    /// An absolute path, or a glob(7) pattern.
    public var path: String
    /// How the condition wakes the app.
    public var wake: WakeManner = .background
    /// Whether a change while the app runs launches the app once more when it has ended.
    public var reruns = false

    /// Creates a trigger that wakes the app into the background.
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
        trigger.reruns = draft.reruns
        if trigger.reruns && trigger.condition.isLevel {
            context.error(
                "rerun belongs to changed and modified: \(trigger.condition.rawValue) launches the app again anyway",
                at: node.position
            )
        }
        return trigger
    }

    /// An entry of `paths` that is being read, so that keys may still be missing.
    struct Draft {
        var name: String?
        var found: [(condition: Condition, path: String)] = []
        var wake = WakeManner.background
        var reruns = false
    }

    static let keys: [Key<Draft>] =
        [
            .optional("name", \.name, Read.text),
            .value("wake", \.wake) { Read.choice($0, $1) },
            .value("rerun", \.reruns, Read.boolean),
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
        if reruns { text += ", rerun" }
        return wake == .background ? text : text + ", wake \(wake.rawValue)"
    }
}
