// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux

/// `torpor --help` and `torpor help`: show an overview that fits a terminal of 80 by 24, all commands, or a manual
/// page.
enum Help {
    /// A manual page that explains a subject.
    struct Topic {
        /// The subject, which is the word after `torpor help`.
        let name: String
        /// The page's name for man(1).
        let page: String
        /// The manual's section.
        let section: String
        /// The path of the page's source in the folder `docs`.
        let source: String

        init(_ name: String, _ page: String, _ section: String = "7", source: String? = nil) {
            (self.name, self.page, self.section, self.source) = (name, page, section, source ?? name + ".md")
        }
    }

    static let topics = [
        Topic("alerts", "torpor-alerts"),
        Topic("apps", "torpor-apps"),
        Topic("configuration", "torpor.toml", "5", source: "man/torpor.toml.5.md"),
        Topic("events", "torpor-events"),
        Topic("lifecycle", "torpor-lifecycle"),
        Topic("memory", "torpor-memory"),
        Topic("policies", "torpor-policy"),
        Topic("sandbox", "torpor-sandbox"),
        Topic("scenes", "torpor-scenes"),
        Topic("transfers", "torpor-transfers"),
    ]

    /// Manual pages that the overview does not list.
    private static let others = [
        Topic("gateway", "torpor-gateway", "8"),
        Topic("protection", "torpor-protection"),
        Topic("torpor", "torpor", "1", source: "man/torpor.1.md"),
        Topic("torpord", "torpord", "8", source: "man/torpord.8.md"),
        Topic("torpor-web", "torpor-web", "1", source: "man/torpor-web.1.md"),
        Topic("torpor-cluster", "torpor-cluster", "8", source: "man/torpor-cluster.8.md"),
        Topic("ocf_torpor_app", "ocf_torpor_app", source: "man/ocf_torpor_app.7.md"),
    ]

    static func topic(_ name: String) -> Topic? { topics.first { $0.name == name } }

    /// Finds a topic that the overview does not list, or any topic by the name of its manual page, such as `torpord` or
    /// `torpor.toml(5)`.
    private static func manual(_ name: String) -> Topic? {
        (topics + others).first { topic in
            [topic.name, topic.page, "\(topic.page)(\(topic.section))", "\(topic.page).\(topic.section)"].contains(name)
        }
    }

    /// The word after `torpor help` that opens a page.
    static func name(of page: HelpPages.Page, in pages: HelpPages) -> String {
        if let topic = (topics + others).first(where: { $0.source == page.name + ".md" }) { return topic.name }
        // `help import` shows the help of the verb, so name the page with its suffix.
        if Torpor.isVerb([page.name]) { return page.name + ".md" }
        // If two pages have the same name, name the one in a subfolder together with its folder.
        let isClear = !Torpor.isVerb([page.title]) && manual(page.title) == nil
        return isClear && pages.page(page.title)?.name == page.name ? page.title : page.name
    }

    /// All words that may follow `torpor help`, except verbs. If the user mistypes one, the error suggests the closest.
    static func names() -> [String] { topics.map(\.name) + others.map(\.name) + HelpPages().pages.map(\.title) }

    /// The overview, which has at most 24 lines of 80 columns.
    private static let brief = """
        torpor controls apps, which torpord runs in the foreground or the background,
        suspends while they are idle, and ends when memory is short.

          torpor list              show all apps and their states
          torpor status APP        show everything about an app
          torpor logs APP -f       follow what an app writes
          torpor top               watch and control all apps on the whole screen
          torpor start APP         launch an app
          torpor stop APP          end an app
          torpor restart APP       end an app and launch it again
          torpor foreground APP    bring an app to the foreground
          torpor suspend APP       stop an app's processes and keep them in memory
          torpor apply             put a changed configuration into effect

        APP is a name, a glob in quotes such as 'web@*', or tag:NAME.

          torpor help --all        list all commands
          torpor COMMAND --help    explain a command and its options, with examples
          torpor help WORD         search the pages, or open one of these:

        """

    /// Wraps words into indented lines of at most 80 columns.
    private static func indented(_ words: [String]) -> String {
        var lines = ["    "]
        for (index, word) in words.enumerated() {
            let word = word + (index + 1 < words.count ? ", " : "")
            if lines[lines.count - 1].utf8.count + word.utf8.count > 80 { lines.append("    ") }
            lines[lines.count - 1] += word
        }
        return lines.map { ($0.hasSuffix(" ") ? String($0.dropLast()) : $0) + "\n" }.joined()
    }

    /// Shows the requested help and returns nil. If only the argument parser can show it, returns the arguments for the
    /// parser.
    static func parsable(_ arguments: [String]) throws(Failure) -> [String]? {
        switch arguments {
        case ["--help"], ["-h"], ["help"], ["help", "--help"], ["help", "-h"]:
            Output.write(brief + indented(topics.map(\.name)))
            return nil
        case ["help", "--all"], ["--help", "--all"]: return ["--help"]
        default: break
        }
        guard arguments.count >= 2, arguments[0] == "help" else { return arguments }
        let words = Array(arguments.dropFirst())
        if words.count == 1, let topic = topic(words[0].lowercased()) {
            try open(topic)
            return nil
        }
        // `help memory rehearse` asks for help on a verb, not on the subject `memory`.
        if Torpor.isVerb(words) || words.contains(where: { $0.hasPrefix("-") || $0.isEmpty }) { return arguments }
        if try looked(up: words) { return nil }
        guard words.count > 1, let topic = topic(words[0].lowercased()) else { return arguments }
        let rest = Terminal.harmless(words.dropFirst().joined(separator: " "))
        throw Failure(
            status: .usage,
            message:
                "no page has “\(topic.name) \(rest)”: ‘torpor help \(topic.name)’ opens the page about \(topic.name)"
        )
    }

    /// Opens the page with that name. If there is none, searches the pages for the words and prints the hits. Returns
    /// whether a page or a hit was found.
    private static func looked(up words: [String]) throws(Failure) -> Bool {
        let text = words.joined(separator: " ")
        let pages = HelpPages()
        if words.count == 1 {
            if let topic = manual(text.lowercased()) {
                try open(topic)
                return true
            }
            if let page = pages.page(text) {
                show(page)
                return true
            }
        }
        // Do not search for very long texts: no heading is that long.
        guard text.utf8.count <= 200 else { return false }
        let habit = words.count == 1 ? Torpor.habits[text] : nil
        let columns = min(max(Terminal.columns ?? 80, 40), 160)
        let found = HelpSearch.found(HelpWords.phrases(for: text), in: pages, columns: columns)
        if let habit { Output.page("There is no verb \(text): \(habit)\n") }
        if let found { Output.write(found) }
        return habit != nil || found != nil
    }

    /// The end of an error message about words that no page contains.
    static func notFound(_ words: [String]) -> String {
        let pages = HelpPages()
        guard !pages.pages.isEmpty else { return ", and there are no pages to search in \(pages.folder)" }
        return ", and no page has \(words.count == 1 ? "the word" : "the words")"
    }

    // MARK: Pages

    /// Opens the page in man(1). If this program runs from its build folder, opens the page's source.
    private static func open(_ topic: Topic) throws(Failure) {
        let name = "\(topic.page)(\(topic.section))"
        if let man = try? AppSide.program("man"), has(topic, man) {
            let words = [man, topic.section, topic.page]
            let error = ThisProcess.execute(man, arguments: words, environment: ThisProcess.environment)
            throw Failure(status: .failed, message: "\(man) could not be run: \(error)")
        }
        let pages = HelpPages()
        guard let page = pages.pages.first(where: { $0.name + ".md" == topic.source }) else {
            throw Failure(
                status: .failed,
                message:
                    "the manual page \(name) is not installed, or man is not: read docs/\(topic.source) of Torpor's "
                    + "sources"
            )
        }
        show(page)
    }

    /// Shows a page without formatting it: in a pager if standard output is a terminal and a pager is installed.
    private static func show(_ page: HelpPages.Page) {
        let wanted = ThisProcess.environment("PAGER") ?? "pager"
        if ThisProcess.isTerminal(1), !wanted.isEmpty, let pager = try? AppSide.program(wanted) {
            _ = ThisProcess.execute(pager, arguments: [pager, page.path], environment: ThisProcess.environment)
        }
        guard let text = HelpPages.text(of: page) else {
            Complaint.say("\(page.path) cannot be read", status: .failed)
            ThisProcess.exit(Outcome.failed.rawValue)
        }
        Output.write(text)
    }

    /// Whether man(1) finds the page.
    private static func has(_ topic: Topic, _ man: String) -> Bool {
        guard let null = try? File.open("/dev/null", [.readWrite]),
            let child = try? ChildProcess(
                man,
                arguments: [man, "-w", topic.section, topic.page],
                environment: ThisProcess.environment,
                descriptors: [(0, null.raw), (1, null.raw), (2, null.raw)]
            )
        else { return false }
        return child.reap() == 0
    }
}
