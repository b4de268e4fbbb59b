// SPDX-License-Identifier: Apache-2.0

import AppConnection
package import CommandLinePages
import Linux
package import TorporAPI
package import Varlink
import WireText

/// The verb `post` without the argument parser (see ``PlainArguments``).
package struct PlainPost {
    private let request: PostRequest
    private let payload: String?
    private let options: PlainOptions

    /// `payload`: the content as on the command line, which `request` does not have yet.
    package init(_ request: PostRequest, payload: String?, options: PlainOptions) {
        self.request = request
        self.payload = payload
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        var request = PostRequest(app: "", topic: "")
        var payload: String?
        let read = PlainWords(words) { option, words in
            switch option {
            case "--payload": return words.set(&payload) { $0 }
            case "--coalesce": return words.set(&request.coalesce) { $0 }
            case "--key": return words.set(&request.key) { $0 }
            case "--urgent" where request.urgent != false: request.urgent = true
            case "--no-wake" where request.urgent != true: request.urgent = false
            default: return false
            }
            return true
        }
        guard let line = read, line.operands.count == 2, AppWord.isName(line.operands[0]) else { return nil }
        request.app = line.operands[0]
        request.topic = line.operands[1]
        self.init(request, payload: payload, options: line.options)
    }

    package func run() throws {
        var request = request
        request.payload = try Self.read(payload)
        request.token = .random()
        let reply: JSON
        if options.socket == nil, AppSide.environment.socket != nil {
            reply = try AppSide.call(.post(request))
        } else {
            reply = try Manager(options).call(.post(request))
        }
        if options.json { return Output.document(reply) }
        let result = try Manager.read { () throws(FieldError) in try PostResult(json: reply) }
        Output.page(Terminal.harmless("\(request.app) \(Self.words(result))") + "\n")
    }

    package static func words(_ result: PostResult) -> String {
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
    package static func read(_ argument: String?) throws(Failure) -> JSON {
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
