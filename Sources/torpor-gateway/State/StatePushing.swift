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
        var isReleased: Bool
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

    /// When the app saved its state on this machine, and how large the state is; nil if the app has none here.
    func found(_ app: String) throws(StateTrouble) -> (savedAt: Int64, bytes: Int64)? {
        let client = try supervisor()
        return try fault { () throws(DocumentFault) in
            try StateDocument.found(app) { request throws(DocumentFault) in try self.call(client, request) }
        }
    }

    private func give(_ document: StateDocument) throws(StateTrouble) {
        let client = try supervisor()
        do throws(DocumentFault) {
            try document.give(
                { request throws(DocumentFault) in try self.call(client, request) },
                isClaimed: true
            )
        } catch {
            throw .wrong("torpord has not taken the state: \(error)")
        }
    }

    // MARK: Pushes

    /// Pushes the app's newest state, unless the server has it already. If this machine owned the app under its token
    /// and no longer does, the message releases the state: the next owner may take it over without a claim
    /// (``adopt(_:)``).
    ///
    /// - Parameters:
    ///   - owner: who owns the app, according to the supervisor; nil to ask the supervisor, if there is a token.
    ///   - isReleased: whether a user releases the state.
    func push(_ app: String, owner: String?, isReleased: Bool = false) throws(StateTrouble) -> Outcome {
        guard let token = tokens.token(of: app) else {
            pushed[app] = nil
            return .noToken
        }
        let owner = if let owner { owner } else { try self.owner(of: app) }
        if owner == "here" { tokens.noteOwned(token, of: app) }
        let isReleased = isReleased || owner == "none" && tokens.wasOwned(token, app)
        if pushed[app]?.claim != token.claim { pushed[app] = nil }
        // Try again if this machine has sent another message of the same claim whose acknowledgement was lost.
        for _ in 0..<3 {
            if pushed[app] == nil {
                guard let last = try last(app) else { return .lost(to: "no machine, since the stream is empty") }
                guard last.claim == token.claim else { return .lost(to: last.node) }
                // Only this machine sends messages with this claim, so the message is valid.
                let savedAt = (try? StateDocument(last.bytes))?.savedAt
                pushed[app] = Pushed(
                    claim: token.claim,
                    sequence: last.sequence,
                    savedAt: savedAt,
                    isReleased: last.isReleased
                )
            }
            guard let before = pushed[app] else { continue }
            // Most events change nothing: do not read the state then.
            guard try found(app)?.savedAt != before.savedAt || isReleased != before.isReleased else {
                return .kept(isNew: false)
            }
            let document = try local(app)
            let bytes = try fault { () throws(DocumentFault) in try document.encoded() }
            do throws(StateTrouble) {
                let sequence = try withServer { server throws(StateTrouble) in
                    try server.keep(
                        bytes,
                        of: app,
                        claim: token.claim,
                        isReleased: isReleased,
                        expected: before.sequence
                    )
                }
                pushed[app] = Pushed(
                    claim: token.claim,
                    sequence: sequence,
                    savedAt: document.savedAt,
                    isReleased: isReleased
                )
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
        let source = StateClaim.source(
            of: app,
            kept: from,
            node: node,
            savedAt: try found(app)?.savedAt,
            owner: owner,
            isForced: isForced
        )
        if case .refused(let sentence) = source { throw .wrong(sentence) }
        let document: StateDocument
        if source == .server, let kept {
            try give(kept)
            document = try asFound(kept)
        } else {
            document = try local(app)
        }
        let sequence = try take(app, with: document, after: message?.sequence ?? 0)
        return Claimed(
            source: source,
            sequence: sequence,
            savedAt: document.savedAt,
            bytes: document.state?.count ?? 0,
            from: message?.node
        )
    }

    /// Returns a document that the supervisor has just stored, with the time at which it was stored, on this machine's
    /// clock. If the app has saved another state since, returns a document with that state.
    private func asFound(_ document: StateDocument) throws(StateTrouble) -> StateDocument {
        let now = try found(document.app)
        guard now?.bytes ?? 0 == Int64(document.state?.count ?? 0) else { return try local(document.app) }
        var document = document
        document.savedAt = now?.savedAt
        return document
    }

    /// Sends the state with a new claim, and stores the token. Fails if the last message about the app is no longer
    /// number `sequence`. Returns the number of the new message.
    private func take(
        _ app: String,
        with document: StateDocument,
        after sequence: UInt64
    ) throws(StateTrouble) -> UInt64 {
        let bytes = try fault { () throws(DocumentFault) in try document.encoded() }
        let claim = RequestToken.random().text
        let new = try withServer { server throws(StateTrouble) in
            try server.keep(bytes, of: app, claim: claim, isReleased: false, expected: sequence)
        }
        do throws(Errno) {
            try tokens.keep(StateTokens.Token(claim: claim, sequence: new), of: app)
        } catch {
            throw .wrong("the token of \(app) cannot be written into \(states.tokens): \(error)")
        }
        return new
    }

    /// Claims the state of an app that this machine owns but has no token for, as after `torpor move`. Does so only if
    /// nothing can be lost: the last message about the app releases the state, and this machine has imported that state
    /// or has saved the same one. Returns the name of the machine that sent the message; nil if the state is not
    /// claimed.
    func adopt(_ app: String) throws(StateTrouble) -> String? {
        // Ask for the owner now: the ownership may have ended since the last report about it.
        guard let row = try ownerships().first(where: { $0.app == app }), row.owner == "here",
            let message = try last(app), message.isReleased, let kept = try? document(message, of: app)
        else { return nil }
        let local = try local(app)
        guard kept.digest == row.imported || kept.state == local.state else { return nil }
        _ = try take(app, with: local, after: message.sequence)
        return message.node
    }

    /// Decodes the document of a message. Any program may have sent the message, so the document is checked.
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
