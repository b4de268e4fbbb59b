// SPDX-License-Identifier: Apache-2.0

import Gateway
import GatewayConfiguration
import Linux
import StateDocuments
import TorporAPI
import Varlink

/// Transfers saved states from the supervisor to the server and back. Not thread-safe.
final class StatePushing {
    /// The result of a push.
    enum Outcome {
        /// The server has the newest state. `isNew` is false if it had that state before the push.
        case kept(isNew: Bool)
        /// This machine has no token for the app, so it must not push.
        case noToken
        /// Another machine, with this name, has claimed the state since.
        case lost(to: String)
    }

    let states: GatewayStates
    let tokens: StateTokens
    let node: String
    private let socket: String
    private let login: NATSLogin
    private var server: StateServer?
    /// The state of each app that this object has pushed last.
    private var pushed: [String: Pushed] = [:]

    private struct Pushed {
        var claim: String
        var sequence: UInt64
        var savedAt: Int64?
    }

    /// How long to wait for a reply of the supervisor.
    private static let patience = Duration.seconds(10)

    init(_ states: GatewayStates, socket: String, _ login: NATSLogin) {
        self.states = states
        self.socket = socket
        self.login = login
        node = states.node ?? ThisProcess.hostName
        tokens = StateTokens(folder: states.tokens)
    }

    /// The connection to the server, opened at the first use.
    private func connected() throws(StateTrouble) -> StateServer {
        if let server { return server }
        let new = try StateServer(states, login, node: node)
        server = new
        return new
    }

    /// Runs `body` with the connection to the server. If the server cannot be reached, drops the connection, so that
    /// the next call connects again and asks the server again what it has.
    private func withServer<T>(_ body: (StateServer) throws(StateTrouble) -> T) throws(StateTrouble) -> T {
        do throws(StateTrouble) {
            return try body(try connected())
        } catch {
            if case .away = error {
                server = nil
                pushed = [:]
            }
            throw error
        }
    }

    /// The last message about the app's state in the stream; nil if there is none.
    func last(_ app: String) throws(StateTrouble) -> StateServer.Message? {
        try withServer { server throws(StateTrouble) in try server.last(app) }
    }

    // MARK: The supervisor

    private func call(_ client: PersistentVarlinkClient, _ request: ManagerRequest) throws(DocumentFault) -> JSON {
        do throws(VarlinkClientError) {
            return try client.call(deadline: Clock.monotonic() + Self.patience) { request.call }
        } catch {
            throw DocumentFault("\(error)")
        }
    }

    private func supervisor() throws(StateTrouble) -> PersistentVarlinkClient {
        do throws(VarlinkClientError) {
            return try PersistentVarlinkClient(path: socket, patience: Self.patience)
        } catch {
            throw .away("\(error)")
        }
    }

    /// The apps whose states are pushed, each with its owner.
    func ownerships() throws(StateTrouble) -> [Ownership] {
        let client = try supervisor()
        // Without `more`, the supervisor sends one reply and does not report later changes.
        let call = VarlinkCall(method: ManagerRequest.owners.call.method, parameters: .emptyObject)
        do throws(VarlinkClientError) {
            let reply = try client.call(deadline: Clock.monotonic() + Self.patience) { call }
            return (reply["apps"]?.arrayValue ?? []).compactMap { try? Ownership(json: $0) }
                .filter { states.keeps($0.app) }
        } catch {
            throw .away("\(error)")
        }
    }

    private func fault<T>(_ body: () throws(DocumentFault) -> T) throws(StateTrouble) -> T {
        do throws(DocumentFault) {
            return try body()
        } catch {
            throw .away(error.description)
        }
    }

    /// The state that the app last saved on this machine.
    func local(_ app: String) throws(StateTrouble) -> StateDocument {
        let client = try supervisor()
        return try fault { () throws(DocumentFault) in
            try StateDocument.read(
                app,
                { request throws(DocumentFault) in try self.call(client, request) },
                withMail: false
            )
        }
    }

    private func give(_ document: StateDocument) throws(StateTrouble) {
        let client = try supervisor()
        do throws(DocumentFault) {
            try document.give { request throws(DocumentFault) in try self.call(client, request) }
        } catch {
            throw .wrong("torpord has not taken the state: \(error)")
        }
    }

    // MARK: Pushes

    /// Pushes the app's newest saved state, unless the server has it already.
    func push(_ app: String) throws(StateTrouble) -> Outcome {
        guard let token = tokens.token(of: app) else {
            pushed[app] = nil
            return .noToken
        }
        if pushed[app]?.claim != token.claim { pushed[app] = nil }
        // Try again if this machine has sent another message of the same claim whose acknowledgement was lost.
        for _ in 0..<3 {
            if pushed[app] == nil {
                guard let last = try last(app) else { return .lost(to: "no machine, since the stream is empty") }
                guard last.claim == token.claim else { return .lost(to: last.node) }
                // Only this machine sends messages with this claim, so the message is valid.
                let savedAt = (try? StateDocument(last.bytes))?.savedAt
                pushed[app] = Pushed(claim: token.claim, sequence: last.sequence, savedAt: savedAt)
            }
            let document = try local(app)
            guard let before = pushed[app], document.savedAt != before.savedAt else { return .kept(isNew: false) }
            let bytes = try fault { () throws(DocumentFault) in try document.encoded() }
            do throws(StateTrouble) {
                let sequence = try withServer { server throws(StateTrouble) in
                    try server.keep(bytes, of: app, claim: token.claim, expected: before.sequence)
                }
                pushed[app] = Pushed(claim: token.claim, sequence: sequence, savedAt: document.savedAt)
                return .kept(isNew: true)
            } catch {
                guard case .overtaken = error else { throw error }
                pushed[app] = nil
            }
        }
        throw .away("the state of \(app) is pushed by several at once")
    }

    // MARK: Claims

    /// The result of a claim.
    struct Claimed {
        var source: StateClaim.Source
        var sequence: UInt64
        var savedAt: Int64?
        var bytes: Int
        /// The machine that last sent the state; nil if the server had none.
        var from: String?
    }

    /// Claims an app's state: chooses the newest state, gives it to the supervisor if it comes from the server, and
    /// sends a message with a new claim. From then on the server refuses states from the machine that had claimed it
    /// before.
    func claim(_ app: String, isForced: Bool) throws(StateTrouble) -> Claimed {
        let owner = try owner(of: app)
        let message = try last(app)
        var kept: StateDocument?
        var from: StateClaim.Kept?
        if let message {
            if !isForced { kept = try document(message, of: app) }
            from = StateClaim.Kept(node: message.node, savedAt: kept?.savedAt)
        }
        let local = try local(app)
        let source = StateClaim.source(
            of: app,
            kept: from,
            node: node,
            savedAt: local.savedAt,
            owner: owner,
            isForced: isForced
        )
        switch source {
        case .refused(let sentence): throw .wrong(sentence)
        case .server: if let kept { try give(kept) }
        case .here: break
        }
        // If the state came from the server, read it again: the supervisor has stored it with a time of this machine's
        // clock.
        let document = source == .server ? try self.local(app) : local
        let bytes = try fault { () throws(DocumentFault) in try document.encoded() }
        let claim = RequestToken.random().text
        let sequence = try withServer { server throws(StateTrouble) in
            try server.keep(bytes, of: app, claim: claim, expected: message?.sequence ?? 0)
        }
        do throws(Errno) {
            try tokens.keep(StateTokens.Token(claim: claim, sequence: sequence), of: app)
        } catch {
            throw .wrong("the token of \(app) cannot be written into \(states.tokens): \(error)")
        }
        return Claimed(
            source: source,
            sequence: sequence,
            savedAt: document.savedAt,
            bytes: document.state?.count ?? 0,
            from: message?.node
        )
    }

    /// Decodes the document in a message. The message is not trusted, since any program may have sent it.
    func document(_ message: StateServer.Message, of app: String) throws(StateTrouble) -> StateDocument {
        let way = "see the stream \(states.stream), or claim with --local, which drops it"
        do throws(DocumentFault) {
            let document = try StateDocument(message.bytes)
            guard document.app == app, document.state != nil, document.mail == nil else {
                throw DocumentFault("it is not a state of \(app)")
            }
            return document
        } catch {
            throw .wrong("message \(message.sequence) about \(app) is not taken: \(error) – \(way)")
        }
    }

    /// Who owns the app, as the supervisor reports.
    private func owner(of app: String) throws(StateTrouble) -> String {
        guard let found = try ownerships().first(where: { $0.app == app }) else {
            throw .wrong(
                states.keeps(app)
                    ? "torpord has no app \(app) with owner = \"external\""
                    : "the state of \(app) is not pushed: see apps of [gateway.state]"
            )
        }
        return found.owner
    }
}
