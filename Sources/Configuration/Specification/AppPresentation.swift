// SPDX-License-Identifier: Apache-2.0

/// What people see of an app beside its name: `title`, `icon`, and what is in its place while it is on its way.
public struct AppPresentation: Sendable, Hashable {
    /// What it is called in all languages that are not in ``titles``; `nil` where its name is enough.
    public var title: String?
    /// What it is called, by language tag (BCP 47) in lower case: `de`, `pt-br`.
    public var titles: [String: String] = [:]
    /// The file of a picture; absolute.
    public var icon: String?
    /// What is shown in its place while it comes to the foreground.
    public var cover = Cover()
    /// The file of a picture for ``cover`` where there is none of what it showed last; absolute.
    public var launchImage: String?

    /// `cover` and `cover_after`.
    public struct Cover: Sendable, Hashable {
        /// Shows the picture whose path stands where ``OpenPlaceholder/file`` does, until it is ended; empty for nothing.
        public var command: [String] = []
        /// How long the app may take before it is covered.
        public var after: Duration = .milliseconds(300)
    }

    /// Nothing but the name.
    public init() {}

    /// Also what ends a line, and what has the text beside it read the other way round.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x2028, 0x2029, 0x202a...0x202e, 0x2066...0x2069: true
        default: scalar.properties.generalCategory == .control
        }
    }

    /// Why a text cannot be a help; nil where it can.
    static func problem(inHelp text: String) -> String? {
        if text.allSatisfy(\.isWhitespace) { return "must not be empty" }
        if text.unicodeScalars.contains(where: { $0 != "\n" && isControl($0) }) {
            return "must not contain control characters"
        }
        return text.utf8.count > 1_000 ? "must not be longer than 1,000 bytes" : nil
    }

    /// Why a text cannot be a title; nil where it can: one line, in which there is something to see.
    public static func problem(inTitle text: String) -> String? {
        if text.allSatisfy(\.isWhitespace) { return "must not be empty" }
        if text.unicodeScalars.contains(where: isControl) { return "must be one line, without control characters" }
        // So many have room in a table and on a button.
        return text.unicodeScalars.count > 80 ? "must not be longer than 80 characters" : nil
    }
}

/// Reads `title`.
enum TitleReader {
    /// - Parameter isTitle: it is one line of at most 80 characters; else a text of some lines.
    static func read(
        _ context: Context,
        _ node: Node,
        into presentation: inout AppPresentation,
        isTitle: Bool = true
    ) {
        guard case .table(let members) = node.value else {
            guard case .string = node.value else {
                let expected = "a string, or a table of strings by language, with the key default"
                return context.error("expected \(expected), found \(node.kind)", at: node.position)
            }
            guard let title = text(context, node, isTitle) else { return }
            (presentation.title, presentation.titles) = (title, [:])
            return
        }
        var title: String?
        var titles: [String: String] = [:]
        for member in members {
            let inner = context.at(member.key)
            guard let text = text(inner, member.node, isTitle) else { continue }
            guard member.key != "default" else {
                title = text
                continue
            }
            guard let tag = languageTag(member.key) else {
                inner.error("must be \"default\" or a language, such as \"de\" or \"pt-BR\"", at: member.position)
                continue
            }
            titles[tag] = text
        }
        guard title != nil || members.contains(where: { $0.key == "default" }) else {
            return context.error("needs the key default, for all other languages", at: node.position)
        }
        (presentation.title, presentation.titles) = (title, titles)
    }

    private static func text(_ context: Context, _ node: Node, _ isTitle: Bool) -> String? {
        guard let text = Read.string(context, node) else { return nil }
        let problem = isTitle ? AppPresentation.problem(inTitle: text) : AppPresentation.problem(inHelp: text)
        guard let problem else { return text }
        context.error(problem, at: node.position)
        return nil
    }

    /// The tag in lower case with hyphens: what locales write `pt_BR` is the same.
    private static func languageTag(_ text: String) -> String? {
        let tag = String(text.lowercased().map { $0 == "_" ? "-" : $0 })
        return tag.wholeMatch(of: /[a-z]{2,8}(-[a-z0-9]{1,8}){0,4}/) == nil ? nil : tag
    }
}
