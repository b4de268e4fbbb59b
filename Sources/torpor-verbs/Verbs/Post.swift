// SPDX-License-Identifier: Apache-2.0

import AppConnection
import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink
import WireText

struct Post: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "post",
        abstract: "Sends an app a message on a topic, now or when it wakes.",
        discussion: """
            The message waits in the app's mailbox, on the disk, until the app has received it. The app takes the \
            topics in its configuration. When a process of an app calls this, it posts in that app's name \
            (accepts_from), unless --socket names the supervisor.
            """
    )
    .examples(
        "torpor post web news --payload '{\"n\":7}'",
        "torpor post web refresh --coalesce latest --no-wake"
    )
    @OptionGroup var app: AppArgument
    @Argument(help: ArgumentHelp("The topic of the message.", valueName: "topic"))
    var topic: String
    @Option(help: ArgumentHelp("The content: JSON, @FILE with JSON, or - for standard input.", valueName: "json"))
    var payload: String?
    @Option(
        help: ArgumentHelp(
            "How to merge it with messages already queued for the topic: all, latest, count, merge or net; "
                + "else as the app's configuration says.",
            valueName: "how"
        ),
        completion: .list(["all", "latest", "count", "merge", "net"])
    )
    var coalesce: String?
    @Option(
        help: ArgumentHelp("The key within the topic: only messages with the same key are merged.", valueName: "key")
    )
    var key: String?
    @Flag(help: "Wake the app for it.")
    var urgent = false
    @Flag(help: "Do not wake the app for it, even if its configuration says urgent.")
    var noWake = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if urgent, noWake { throw ValidationError("--urgent and --no-wake say the opposite: choose one") }
    }

    package func run() throws {
        var request = PostRequest(app: app.app, topic: topic)
        request.payload = try Self.read(payload)
        request.coalesce = coalesce
        request.key = key
        request.urgent = urgent ? true : noWake ? false : nil
        request.token = .random()
        let reply: JSON
        if options.socket == nil, AppSide.environment.socket != nil {
            reply = try AppSide.call(.post(request))
        } else {
            reply = try Manager(options).call(.post(request))
        }
        if options.json { return Output.document(reply) }
        let result = try Manager.read { () throws(FieldError) in try PostResult(json: reply) }
        Output.page(Terminal.harmless("\(app.app) \(Self.words(result))") + "\n")
    }

    static func words(_ result: PostResult) -> String {
        switch (result.change, result.outcome) {
        case ("cancelled", _): "gets nothing: it cancels out what waited"
        case ("repeated", _): "had it already"
        case (_, "told"): result.message.map { "does not get it yet: it \($0)" } ?? "gets it now"
        case (_, "woken"): "is woken for it"
        case (_, "held-back"): "gets it when it runs: it \(result.message ?? "is not woken now")"
        default: result.message.map { "does not get it yet: it \($0)" } ?? "gets it when it runs"
        }
    }

    /// Parses the payload; null if no payload is given.
    static func read(_ argument: String?) throws(Failure) -> JSON {
        guard let argument else { return .null }
        var text = argument
        if argument == "-" || argument.hasPrefix("@") {
            do throws(Errno) {
                let bytes =
                    argument == "-"
                    ? try File.read(descriptor: 0, limit: 1 << 20)
                    : try File.read(String(argument.dropFirst()), limit: 1 << 20)
                text = String(wire: bytes)
            } catch {
                let name = argument == "-" ? "standard input" : String(argument.dropFirst())
                throw Failure(status: .usage, message: "\(name) cannot be read: \(error)")
            }
        }
        do {
            return try JSON.parse(text)
        } catch {
            throw Failure(
                status: .usage,
                message: "the payload is not JSON (\(error)): put a text in quotes, as in --payload '\"hello\"'"
            )
        }
    }
}
