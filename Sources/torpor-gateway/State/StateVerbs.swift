// SPDX-License-Identifier: Apache-2.0

import Gateway
import GatewayConfiguration
import Linux
import StateDocuments
import TorporAPI
import Varlink

/// The verbs of `torpor-gateway state`, for users and for a cluster engine's agent.
struct StateVerbs {
    enum Verb: String {
        case claim, push, release, list
    }

    /// The command line, parsed.
    struct Order {
        var verb = Verb.list
        var app: String?
        /// Whether to use this machine's state and drop the server's (`--local`).
        var isForced = false
        var isJSON = false
        var timeout = Duration.seconds(30)
    }

    /// Why a verb failed, as a sentence.
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    private let order: Order
    private let pushing: StatePushing
    private let end: Duration

    init(_ order: Order, _ pushing: StatePushing) {
        self.order = order
        self.pushing = pushing
        end = Clock.monotonic() + order.timeout
    }

    /// Gives up all files but those that the verb needs, since a library in C parses what the server sends, often with
    /// the rights of root. Must be called before any thread is started.
    static func confine(_ verb: Verb, _ states: GatewayStates, _ secrets: Secrets) throws(Errno) {
        // Create the folder now, because Landlock allows nothing in a folder that is created later. If that fails, the
        // claim reports it.
        if verb == .claim { try? File.makeDirectories(states.tokens) }
        let writes = verb != .list
        _ = try Confinement.confine(
            readable: Confinement.networkFiles + SourceService.files(of: states.broker, secrets)
                + (writes ? [] : [states.tokens]),
            writable: writes ? [states.tokens] : []
        )
    }

    /// Carries out the verb and prints the result.
    func run() throws {
        switch order.verb {
        case .list: try list()
        case .claim: try claim(try app())
        case .push: try push(try app())
        case .release: try release(try app())
        }
    }

    private func app() throws(Problem) -> String {
        guard let app = order.app else {
            throw Problem(description: "name an app: torpor-gateway state \(order.verb.rawValue) APP")
        }
        if let problem = GatewayNames.problem(app: app) { throw Problem(description: "\(app): \(problem)") }
        return app
    }

    /// Calls `body` again while the server or torpord cannot be reached, until the timeout is over.
    private func patiently<T>(_ body: () throws(StateTrouble) -> T) throws -> T {
        var pause = Duration.milliseconds(100)
        while true {
            do throws(StateTrouble) {
                return try body()
            } catch {
                switch error {
                case .away, .overtaken:
                    guard Clock.monotonic() + pause < end else {
                        throw Problem(description: "\(error); tried for \(order.timeout.components.seconds) s")
                    }
                case .tooLarge, .wrong: throw error
                }
            }
            ThisProcess.sleep(pause)
            pause = min(pause * 2, .seconds(2))
        }
    }

    // MARK: Verbs

    private func claim(_ app: String) throws {
        let claimed = try patiently { () throws(StateTrouble) in try pushing.claim(app, isForced: order.isForced) }
        let isImported = claimed.source == .server
        if order.isJSON {
            return say([
                "app": .string(app), "node": .string(pushing.node), "from": .optional(claimed.from),
                "imported": .bool(isImported), "saved_at": .optional(claimed.savedAt),
                "bytes": .int(Int64(claimed.bytes)), "sequence": .int(Int64(clamping: claimed.sequence)),
            ])
        }
        let what =
            claimed.savedAt == nil
            ? "no state"
            : "a state of \(claimed.bytes) bytes, " + (isImported ? "from \(claimed.from ?? "")" : "saved here")
        print("\(app): is claimed by \(pushing.node), with \(what)")
    }

    private func push(_ app: String) throws {
        switch try patiently({ () throws(StateTrouble) in try pushing.push(app, owner: nil) }) {
        case .kept(let isNew):
            if order.isJSON { return say(["app": .string(app), "pushed": .bool(isNew)]) }
            print("\(app): " + (isNew ? "its state is pushed" : "the server has its newest state"))
        case .noToken:
            throw Problem(
                description: "this machine holds no token of \(app): ‘torpor-gateway state claim \(app)’ takes one"
            )
        case .lost(let node): throw lost(app, node)
        }
    }

    private func release(_ app: String) throws {
        let outcome = try patiently { () throws(StateTrouble) in
            try pushing.push(app, owner: "none", isReleased: true)
        }
        pushing.tokens.remove(app)
        if case .lost(let node) = outcome { throw lost(app, node) }
        var had = true
        if case .noToken = outcome { had = false }
        if order.isJSON { return say(["app": .string(app), "released": .bool(had)]) }
        print("\(app): " + (had ? "its state is pushed, and released" : "this machine held no token"))
    }

    private func lost(_ app: String, _ node: String) -> Problem {
        Problem(
            description:
                "the state of \(app) was claimed since by \(node.isEmpty ? "another program" : node): what was "
                + "saved here after that is not pushed"
        )
    }

    /// A row in the list of states.
    private struct Row {
        var app: String
        var owner: String
        /// The machine that has claimed the state; nil if no machine has.
        var node: String?
        var isOurs = false
        /// Whether that machine no longer owns the app.
        var isReleased = false
        var bytes: Int?
        var isCurrent: Bool?
        var problem: String?

        var json: JSON {
            [
                "app": .string(app), "owner": .string(owner), "node": .optional(node), "ours": .bool(isOurs),
                "released": .bool(isReleased),
                "bytes": .optional(bytes.map { Int64($0) }), "current": .optional(isCurrent),
                "problem": .optional(problem),
            ]
        }

        var cells: [String] {
            [
                app, owner, node.map { isReleased ? $0 + " (released)" : $0 } ?? "-", isOurs ? "yes" : "no",
                bytes.map { "\($0)" } ?? "-",
                problem ?? isCurrent.map { $0 ? "as here" : "older than here" } ?? "-",
            ]
        }
    }

    private func list() throws {
        let all = try patiently { () throws(StateTrouble) in try pushing.ownerships() }
        let chosen = order.app.map { name in all.filter { $0.app == name } } ?? all
        if let name = order.app, chosen.isEmpty {
            throw Problem(description: "torpord has no app \(name) with owner = \"external\" whose state is pushed")
        }
        let rows = try chosen.map { app in
            try patiently { () throws(StateTrouble) in try row(app) }
        }
        if order.isJSON { return say(.array(rows.map(\.json))) }
        let table = [["APP", "OWNER", "CLAIMED BY", "TOKEN", "BYTES", "SERVER"]] + rows.map(\.cells)
        let widths = table[0].indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        for cells in table {
            let line = zip(cells, widths).map { cell, width in
                cell + String(repeating: " ", count: max(0, width - cell.count))
            }
            print(line.joined(separator: "  ").trimmingEnd)
        }
    }

    private func row(_ app: Ownership) throws(StateTrouble) -> Row {
        var row = Row(app: app.app, owner: app.owner)
        guard let message = try pushing.last(app.app) else {
            row.problem = "nothing"
            return row
        }
        row.node = message.node
        row.isReleased = message.isReleased
        row.isOurs = pushing.tokens.token(of: app.app)?.claim == message.claim
        row.bytes = message.bytes.count
        do throws(StateTrouble) {
            let kept = try pushing.document(message, of: app.app)
            // Compare only times of this machine's clock: those of another clock cannot be compared with them.
            if row.isOurs { row.isCurrent = try pushing.found(app.app)?.savedAt == kept.savedAt }
        } catch {
            guard case .wrong = error else { throw error }
            row.problem = "no state of this app"
        }
        return row
    }

    private func say(_ json: JSON) { print(json.description) }
}

extension String {
    fileprivate var trimmingEnd: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}

extension StateVerbs.Order {
    /// Parses the words after `state`. If they are invalid, the failure has a sentence for standard error.
    static func read(_ words: [String], file: inout String) -> Result<StateVerbs.Order, StateVerbs.Problem> {
        var order = StateVerbs.Order()
        var words = words[...]
        func wrong(_ sentence: String) -> Result<StateVerbs.Order, StateVerbs.Problem> {
            .failure(StateVerbs.Problem(description: sentence))
        }
        guard let verb = words.popFirst().flatMap(StateVerbs.Verb.init) else {
            return wrong("state needs claim, push, release or list: see torpor-gateway --help")
        }
        order.verb = verb
        while let word = words.popFirst() {
            switch word {
            case "--local" where verb == .claim: order.isForced = true
            case "--json": order.isJSON = true
            case "--config":
                guard let path = words.popFirst() else { return wrong("--config needs a file") }
                file = path
            case "--timeout":
                guard let text = words.popFirst(),
                    let number = Int64(text.hasSuffix("s") ? String(text.dropLast()) : text),
                    (1...3600).contains(number)
                else { return wrong("--timeout needs seconds from 1 to 3600, such as 30s") }
                order.timeout = .seconds(number)
            default:
                guard !word.hasPrefix("-"), order.app == nil else {
                    return wrong("state \(verb.rawValue) does not take \(word): see torpor-gateway --help")
                }
                order.app = word
            }
        }
        return .success(order)
    }
}
