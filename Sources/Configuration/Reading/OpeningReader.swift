// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Mailbox

/// Reads `url_schemes`, `url_hosts`, `opens`, `may_open`, `open_command` and `activities`.
enum OpeningReader {
    /// The maximum number of entries in each list.
    private static let most = 64

    @Sendable static func schemes(_ context: Context, _ node: Node) -> [String]? {
        entries(context, node) { context, node in scheme(context, node) }
    }

    @Sendable static func mayOpen(_ context: Context, _ node: Node) -> [String]? {
        entries(context, node) { context, node in
            if case .string("*") = node.value { return "*" }
            return scheme(context, node)
        }
    }

    @Sendable static func hosts(_ context: Context, _ node: Node) -> [String]? {
        entries(context, node) { context, node in
            guard let text = Read.text(context, node).map({ OpenedURL.lowercased($0.utf8) }) else { return nil }
            // Accept a host only in the normal form of hosts in URLs, so that it can be compared with the host of a
            // URL.
            guard OpenedURL.problem("https://\(text)/") == nil,
                OpenedURL.host("https://\(text)/")?.utf8.elementsEqual(text.utf8) == true
            else {
                context.error(
                    "\(quoted(text)) is not the name of a host: write it without scheme, user, port and path, as in "
                        + "\"notes.example.org\"",
                    at: node.position
                )
                return nil
            }
            return text
        }
    }

    @Sendable static func files(_ context: Context, _ node: Node) -> [String]? {
        entries(context, node) { context, node in
            guard let text = Read.text(context, node) else { return nil }
            guard OpeningSpecification.isType(text) else { return text }
            let parts = text.lowercased().split(separator: "/", omittingEmptySubsequences: false)
            let isType =
                parts.count == 2 && parts.allSatisfy { !$0.isEmpty && !$0.utf8.contains(0x20) } && parts[0] != "."
            guard isType, !text.hasPrefix("*.") else {
                context.error(
                    "\(quoted(text)) is neither a media type like \"text/markdown\" nor a pattern of file names like "
                        + "\"*.md\"",
                    at: node.position
                )
                return nil
            }
            return text.lowercased()
        }
    }

    @Sendable static func activities(_ context: Context, _ node: Node) -> [String]? {
        entries(context, node) { context, node in
            guard let text = Read.text(context, node) else { return nil }
            guard let problem = Activity.problem(ofType: Array(text.utf8)) else { return text }
            context.error("\(quoted(text)) is no type of an activity: it \(problem)", at: node.position)
            return nil
        }
    }

    @Sendable static func command(_ context: Context, _ node: Node) -> [String]? {
        guard let words = Read.command(context, node) else { return nil }
        if words.isEmpty { return words }
        guard let problem = problem(words, isOpenCommand: true) else { return words }
        context.error(problem, at: node.position)
        return nil
    }

    /// Why the placeholders for a URL in `command` are not valid; nil if they are valid.
    static func problem(_ command: [String], isOpenCommand: Bool) -> String? {
        let count = command.count { $0 == OpenPlaceholder.url || $0 == OpenPlaceholder.file }
        if OpenPlaceholder.isIn(Array(command.prefix(1))) {
            return "must begin with a program, but \(command[0]) stands for a URL"
        }
        if count > 1 { return "has \(count) places for a URL: write %u or %f once" }
        if count == 0, isOpenCommand {
            return "has no place for the URL: write \"%u\" (the URL) or \"%f\" (the path of a file) as an argument"
        }
        return nil
    }

    /// Warns if an app opens URLs or files but has no way to learn which ones. Does the same for activities.
    static func check(_ specification: AppSpecification, _ draft: AppDraft) {
        let opening = specification.opening
        let isDelegate = specification.rules.readiness == .delegate
        if !opening.activities.isEmpty, !isDelegate, specification.signals[.continueActivity] == nil {
            draft.warning(
                "activities",
                "nothing tells the app what to continue, unless it has a delegate when it is asked: write ready = "
                    + "\"delegate\", or signals.continueActivity"
            )
        }
        let keys = [
            ("url_schemes", opening.schemes.isEmpty), ("url_hosts", opening.hosts.isEmpty),
            ("opens", opening.files.isEmpty),
        ]
        guard let key = keys.first(where: { !$0.1 })?.0 else { return }
        // The app can learn the target from its delegate, a signal, `open_command`, or a placeholder in `exec`.
        let isTold =
            specification.rules.readiness == .delegate || specification.signals[.openURL] != nil
            || !opening.command.isEmpty || OpenPlaceholder.isIn(specification.exec)
        guard !isTold else { return }
        draft.warning(
            key,
            "nothing tells the app what to open, unless it has a delegate when it is asked: write ready = \"delegate\", "
                + "an open_command, \"%u\" in exec, or signals.openURL"
        )
    }

    private static func scheme(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node)?.lowercased() else { return nil }
        guard OpenedURL.isScheme(text.utf8) else {
            context.error(
                "\(quoted(text)) is not the name of a scheme (RFC 3986): a letter, then letters, digits, +, - or ., "
                    + "without a colon",
                at: node.position
            )
            return nil
        }
        guard !OpenedURL.refusedSchemes.contains(text) else {
            let how = text == "file" ? ": name the files that the app opens in opens" : ""
            context.error("no app can have the scheme \(quoted(text))\(how)", at: node.position)
            return nil
        }
        return text
    }

    private static func entries(
        _ context: Context,
        _ node: Node,
        _ read: (Context, Node) -> String?
    ) -> [String]? {
        guard let entries = Read.elements(context, node, of: "strings", read) else { return nil }
        guard entries.count <= most else {
            context.error("has \(entries.count) entries: at most \(most) are allowed", at: node.position)
            return nil
        }
        var seen: Set<String> = []
        return entries.filter { seen.insert($0).inserted }
    }
}
