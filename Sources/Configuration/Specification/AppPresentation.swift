// SPDX-License-Identifier: Apache-2.0

/// How an app is presented to users: `title`, `summary`, `icon`, the picture that is shown while the app starts, and
/// the app's language.
public struct AppPresentation: Sendable, Hashable {
    /// The app's title for users of all languages that are not in ``titles``; `nil` if it has none.
    public var title: String?
    /// Translations of the title. The keys are language tags (BCP 47) in lower case: `de`, `pt-br`.
    public var titles: [String: String] = [:]
    /// The app's purpose in one line, for users of all languages that are not in ``summaries``; `nil` if not set.
    public var summary: String?
    /// Translations of the summary. The keys are language tags (BCP 47) in lower case.
    public var summaries: [String: String] = [:]
    /// The absolute path of the app's icon; `nil` if it has none.
    public var icon: String?
    /// The absolute paths of further icons. The keys are sizes in pixels (`64`), or `dark` for a dark background.
    public var icons: [String: String] = [:]
    /// The categories under which menus list the app: names from freedesktop.org's menu specification.
    public var categories: [String] = []
    /// The locale that the app gets as LANG, such as `de_DE.UTF-8`; `nil` for the supervisor's own.
    public var language: String?
    /// A command that shows a picture in place of the app until the app reaches the foreground, and when it is run.
    public var cover = Cover()
    /// The absolute path of a picture that the cover shows if the app has no snapshot.
    public var launchImage: String?

    /// The keys `cover` and `cover_after`: a command that shows a picture while the app starts.
    public struct Cover: Sendable, Hashable {
        /// A command that shows a picture until the command is terminated. The picture's path replaces
        /// ``OpenPlaceholder/file``. Empty for no command.
        public var command: [String] = []
        /// The command is run if the app takes longer than this to reach the foreground.
        public var after: Duration = .milliseconds(300)
    }

    /// Creates a presentation without a title and an icon.
    public init() {}

    /// Whether a character is a control character, a line separator, or a character that reverses the direction of
    /// text (bidi).
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x2028, 0x2029, 0x202a...0x202e, 0x2066...0x2069: true
        default: scalar.properties.generalCategory == .control
        }
    }

    /// Why a text cannot be the help of a setting; nil if it can be.
    static func problem(inHelp text: String) -> String? {
        if text.allSatisfy(\.isWhitespace) { return "must not be empty" }
        if text.unicodeScalars.contains(where: { $0 != "\n" && isControl($0) }) {
            return "must not contain control characters"
        }
        return text.utf8.count > 1_000 ? "must not be longer than 1,000 bytes" : nil
    }

    /// Why a text cannot be a title; nil if it can be. A title is one line of visible characters, short enough for a
    /// table or a button.
    public static func problem(inTitle text: String) -> String? { problem(inLine: text, longest: 80) }

    /// Why a text cannot be a summary; nil if it can be. A summary is one line of visible characters.
    static func problem(inSummary text: String) -> String? { problem(inLine: text, longest: 200) }

    private static func problem(inLine text: String, longest: Int) -> String? {
        if text.allSatisfy(\.isWhitespace) { return "must not be empty" }
        if text.unicodeScalars.contains(where: isControl) { return "must be one line, without control characters" }
        return text.unicodeScalars.count > longest ? "must not be longer than \(longest) characters" : nil
    }
}

/// Reads texts that may have translations: `title`, `summary`, and `help` of a setting.
enum TitleReader {
    /// The key whose text is read. It determines the maximum length.
    enum Purpose {
        /// One line of at most 80 characters.
        case title
        /// One line of at most 200 characters.
        case summary
        /// Several lines.
        case help

        func problem(_ text: String) -> String? {
            switch self {
            case .title: AppPresentation.problem(inTitle: text)
            case .summary: AppPresentation.problem(inSummary: text)
            case .help: AppPresentation.problem(inHelp: text)
            }
        }
    }

    static func read(_ context: Context, _ node: Node, into presentation: inout AppPresentation) {
        guard let texts = read(context, node, for: .title) else { return }
        (presentation.title, presentation.titles) = texts
    }

    static func readSummary(_ context: Context, _ node: Node, into presentation: inout AppPresentation) {
        guard let texts = read(context, node, for: .summary) else { return }
        (presentation.summary, presentation.summaries) = texts
    }

    /// Reads a text and its translations. Returns nil after an error.
    static func read(
        _ context: Context,
        _ node: Node,
        for purpose: Purpose
    ) -> (text: String?, byLanguage: [String: String])? {
        guard case .table(let members) = node.value else {
            guard case .string = node.value else {
                let expected = "a string, or a table of strings by language, with the key default"
                context.error("expected \(expected), found \(node.kind)", at: node.position)
                return nil
            }
            return text(context, node, purpose).map { ($0, [:]) }
        }
        var title: String?
        var titles: [String: String] = [:]
        for member in members {
            let inner = context.at(member.key)
            guard let text = text(inner, member.node, purpose) else { continue }
            guard member.key != "default" else {
                title = text
                continue
            }
            guard let tag = languageTag(member.key) else {
                inner.error("must be \"default\" or a language, such as \"de\" or \"pt-BR\"", at: member.position)
                continue
            }
            if let problem = problem(inTag: tag) { inner.warning(problem, at: member.position) }
            titles[tag] = text
        }
        guard title != nil || members.contains(where: { $0.key == "default" }) else {
            context.error("needs the key default, for all other languages", at: node.position)
            return nil
        }
        return (title, titles)
    }

    private static func text(_ context: Context, _ node: Node, _ purpose: Purpose) -> String? {
        guard let text = Read.string(context, node) else { return nil }
        guard let problem = purpose.problem(text) else { return text }
        context.error(problem, at: node.position)
        return nil
    }

    /// Why a language tag (BCP 47) is not valid, so that no user has this language; nil if the tag is valid.
    private static func problem(inTag tag: String) -> String? {
        let parts = tag.split(separator: "-")
        guard let language = parts.first, language.utf8.count <= 3 else {
            return "is not the code of a language, so no reader gets this text: write, for example, \"de\" or \"pt-BR\""
        }
        // A language, then optional parts in this order: script, region, variants, extensions, and private use after
        // an x.
        let shape =
            /[a-z]{2,3}(-[a-z]{3}){0,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(-[a-z0-9](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?/
        guard tag.wholeMatch(of: shape) == nil else { return nil }
        return "is not a language tag (BCP 47), so no reader gets this text: write, for example, \"de\" or \"pt-BR\""
    }

    /// The text as a language tag in lower case with hyphens; nil if the text is not a language tag. Underscores are
    /// accepted too, as in `pt_BR`.
    private static func languageTag(_ text: String) -> String? {
        let tag = String(text.lowercased().map { $0 == "_" ? "-" : $0 })
        return tag.wholeMatch(of: /[a-z]{2,8}(-[a-z0-9]{1,8}){0,4}/) == nil ? nil : tag
    }
}
