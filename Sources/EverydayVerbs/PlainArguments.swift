// SPDX-License-Identifier: Apache-2.0

import CommandLinePages

/// The values of the options that every verb has, for use without the argument parser.
package struct PlainOptions: Sendable {
    package var socket: String?
    package var json = false
    package var verbose = false

    package init(socket: String? = nil, json: Bool = false, verbose: Bool = false) {
        self.socket = socket
        self.json = json
        self.verbose = verbose
    }
}

/// Parses simple command lines of the verbs that shell prompts, loops, scripts, probes and apps call often. The
/// argument parser would take longer than the rest of such a command. Command lines with other options or with mistakes
/// are left to the parser.
package struct PlainArguments {
    /// Runs the verb.
    package let run: () throws -> Void

    /// Parses a command line, without the program's name. Options may come before the verb.
    package init?(_ arguments: [String]) {
        let (leading, words) = CommandLineArguments.split(arguments)
        guard let verb = words.first, let run = Self.verb(verb, (leading + words.dropFirst())[...]) else { return nil }
        self.run = run
    }

    private static func verb(_ verb: String, _ words: ArraySlice<String>) -> (() throws -> Void)? {
        switch verb {
        case "list", "ls": PlainList(words).map { list in { try list.run() } }
        case "status": PlainStatus(words).map { status in { try status.run() } }
        case "health": PlainHealth(words).map { health in { try health.run() } }
        case "logs": PlainLogs(words).map { logs in { try logs.run() } }
        case "events": PlainEvents(words).map { events in { try events.run() } }
        case "history": PlainHistory(words).map { history in { try history.run() } }
        case "signal": PlainSignal(words).map { signal in { try signal.run() } }
        case "post": PlainPost(words).map { post in { try post.run() } }
        case "mailbox": PlainMailbox(words).map { mailbox in { try mailbox.run() } }
        case "app": PlainAppVerb.verb(words)
        default: PlainVerb(verb, words).map { verb in { try verb.run() } }
        }
    }
}
