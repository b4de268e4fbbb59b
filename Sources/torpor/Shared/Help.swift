// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux

/// `torpor --help` and `torpor help`: an overview that fits a terminal of 80 by 24, all commands, or a manual page.
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

    static func topic(_ name: String) -> Topic? { topics.first { $0.name == name } }

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
          torpor help TOPIC        open a manual page:

        """

    /// Words, wrapped into indented lines of at most 80 columns.
    private static func indented(_ words: [String]) -> String {
        var lines = ["    "]
        for (index, word) in words.enumerated() {
            let word = word + (index + 1 < words.count ? ", " : "")
            if lines[lines.count - 1].utf8.count + word.utf8.count > 80 { lines.append("    ") }
            lines[lines.count - 1] += word
        }
        return lines.map { ($0.hasSuffix(" ") ? String($0.dropLast()) : $0) + "\n" }.joined()
    }

    /// Shows the requested help. If the parser must show it, returns the arguments for the parser; otherwise nil.
    static func parsable(_ arguments: [String]) throws(Failure) -> [String]? {
        switch arguments {
        case ["--help"], ["-h"], ["help"], ["help", "--help"], ["help", "-h"]:
            Output.write(brief + indented(topics.map(\.name)))
            return nil
        case ["help", "--all"], ["--help", "--all"]: return ["--help"]
        default: break
        }
        guard arguments.count >= 2, arguments[0] == "help", let topic = topic(arguments[1].lowercased()) else {
            return arguments
        }
        // `help memory rehearse` asks for help on a verb, not on the subject `memory`.
        guard let more = arguments.dropFirst(2).first else {
            try open(topic)
            return nil
        }
        if Torpor.verb(in: Array(arguments.dropFirst())) > 1 { return arguments }
        throw Failure(
            status: .usage,
            message: "‘torpor help \(topic.name)’ takes no further argument: leave out “\(Terminal.harmless(more))”"
        )
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
        guard let source = source(of: topic) else {
            throw Failure(
                status: .failed,
                message:
                    "the manual page \(name) is not installed, or man is not: read docs/\(topic.source) of Torpor's "
                    + "sources"
            )
        }
        do throws(Errno) {
            Output.write(try File.read(source, limit: 1 << 20))
        } catch {
            throw Failure(status: .failed, message: "\(source) cannot be read: \(error)")
        }
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

    /// The path of the page's source if this program is not installed. It is in a folder above the program's; nil if
    /// it is not found.
    private static func source(of topic: Topic) -> String? {
        guard let program = try? File.readLink("/proc/self/exe") else { return nil }
        var parts = program.split(separator: "/").dropLast()
        while !parts.isEmpty {
            let folder = "/" + parts.joined(separator: "/")
            let path = folder + "/docs/" + topic.source
            if File.exists(folder + "/Package.swift"), File.exists(path) { return path }
            parts.removeLast()
        }
        return nil
    }
}
