// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
package import TorporAPI
package import Varlink
import WireText

/// An app's saved state and its mail, as a document for another machine (``SealedDocument``).
package struct StateDocument: Sendable {
    /// The largest document, in bytes: the largest state, and mail of the same size.
    package static let mostBytes = 2 * StatePart.mostState
    /// The largest mail message in a document: the largest payload, plus room for the other members.
    private static let mostBytesOfMessage = JSON.payloadSizeLimit + (64 << 10)
    private static let form = SealedDocument.Form(
        format: "torpor-state",
        version: 1,
        writer: "torpor state export",
        wrong: "no exported state"
    )

    package var app: String
    /// When the state was saved, microseconds since 1970; nil if the app has none.
    package var savedAt: Int64?
    /// The app's state; nil if the document is not about the state.
    package var state: [UInt8]?
    /// The messages that are queued for the app; nil if the document is not about messages.
    package var mail: [MailInfo]?

    /// What the document contains, for programs.
    package var summary: JSON {
        [
            "app": .string(app), "saved_at": .optional(savedAt),
            "bytes": .optional(state.map { Int64($0.count) }), "mail": .optional(mail.map { Int64($0.count) }),
        ]
    }

    // MARK: Bytes

    /// Reads a document.
    ///
    /// - Throws: ``DocumentFault`` with a sentence if it is damaged, cut off, or of another version.
    package init(_ bytes: [UInt8]) throws(DocumentFault) {
        let document = try SealedDocument(bytes, Self.form)
        do throws(FieldError) {
            let fields = try Fields(document.header)
            app = try fields.string("app")
            savedAt = try fields.optionalInt("saved_at")
            let count = try fields.optionalInt("bytes")
            guard Int64(document.body.count) == count ?? 0, document.body.count <= StatePart.mostState else {
                throw FieldError(field: "bytes", problem: "is not the size of the state")
            }
            state = count == nil ? nil : Array(document.body)
            mail = nil
            if fields["mail"].map({ !$0.isNull }) ?? false {
                mail = try fields.list("mail") { json throws(FieldError) in try MailInfo(json: json) }
            }
            // Refuse larger messages here: torpord would close the connection, and the call would be repeated without
            // success.
            for message in mail ?? [] where message.json.serialised().count > Self.mostBytesOfMessage {
                throw FieldError(field: "mail", problem: "has a message that is larger than any app gets")
            }
        } catch {
            throw Self.form.bad("cannot be read (\(error))")
        }
    }

    /// The document as bytes.
    package func encoded() throws(DocumentFault) -> [UInt8] {
        let members: JSONObject = [
            "app": .string(app), "saved_at": .optional(savedAt), "bytes": .optional(state.map { Int64($0.count) }),
            "mail": mail.map { .array($0.map(\.json)) } ?? .null,
        ]
        let bytes = SealedDocument.encoded(members, state ?? [], Self.form)
        guard bytes.count <= Self.mostBytes else {
            throw DocumentFault(
                "the mail of \(app) is too much for an export: take some out with ‘torpor mailbox \(app) --take’"
            )
        }
        return bytes
    }

    // MARK: Supervisors

    /// Makes a call to the supervisor, and returns its reply.
    package typealias Call = (ManagerRequest) throws(DocumentFault) -> JSON

    private init(app: String) { self.app = app }

    /// A document with the bytes of a state, and without mail.
    ///
    /// - Throws: ``DocumentFault`` with a sentence if the state is empty, or larger than the largest state that an app
    ///   can get.
    package init(app: String, state: [UInt8]) throws(DocumentFault) {
        guard !state.isEmpty else { throw DocumentFault("the file is empty: name one with a state", isInput: true) }
        guard state.count <= StatePart.mostState else {
            throw DocumentFault(
                "a state has at most \(StatePart.mostState >> 20) MiB, and this is larger: name another file"
            )
        }
        (self.app, self.state) = (app, state)
    }

    private static func read<T>(_ body: () throws(FieldError) -> T) throws(DocumentFault) -> T {
        do throws(FieldError) {
            return try body()
        } catch {
            throw DocumentFault("the supervisor's reply cannot be read: \(error)")
        }
    }

    /// Reads an app's state and mail from its supervisor.
    package static func read(
        _ app: String,
        _ call: Call,
        withState: Bool = true,
        withMail: Bool = true
    ) throws(DocumentFault) -> StateDocument {
        var document = StateDocument(app: app)
        if withState { (document.savedAt, document.state) = try state(of: app, call) }
        if withMail {
            document.mail = try mailbox(of: app, call).mail.filter { !$0.inFlight && posted.contains($0.name) }
        }
        return document
    }

    /// The app's whole mailbox.
    static func mailbox(of app: String, _ call: Call) throws(DocumentFault) -> MailboxStatus {
        var mail: [MailInfo] = []
        var request = MailboxRequest(app: app)
        while true {
            let reply = try call(.mailbox(request))
            var status = try Self.read { () throws(FieldError) in try MailboxStatus(json: reply) }
            mail += status.mail
            request.after = mail.last?.id
            guard status.hasMore, !status.mail.isEmpty else {
                status.mail = mail
                return status
            }
        }
    }

    /// When the app saved its state, according to its supervisor, and the size of the state in bytes; nil if there is
    /// no state. Unlike ``read(_:_:withState:withMail:)``, this does not transfer the state.
    package static func found(_ app: String, _ call: Call) throws(DocumentFault) -> (savedAt: Int64, bytes: Int64)? {
        // This offset is beyond the end of every state, so the reply has no bytes of the state.
        let reply = try call(.exportState(app: app, offset: Int64(StatePart.mostState)))
        let part = try Self.read { () throws(FieldError) in try StatePart(json: reply) }
        return part.savedAt.map { ($0, part.bytes) }
    }

    /// The messages that may be posted on another machine: all other messages are about this machine.
    private static let posted: Set<String> = ["didReceiveEvent", "didReceiveRemoteNotification"]

    private static func state(of app: String, _ call: Call) throws(DocumentFault) -> (Int64?, [UInt8]) {
        // If the app saves another state during the export, start again. No app saves ten states in so short a time.
        for _ in 0..<10 {
            var (state, first): ([UInt8], StatePart?) = ([], nil)
            while true {
                let reply = try call(.exportState(app: app, offset: Int64(state.count)))
                let part = try Self.read { () throws(FieldError) in try StatePart(json: reply) }
                guard part.bytes <= StatePart.mostState else {
                    throw DocumentFault(
                        "the state of \(app) has \(part.bytes >> 20) MiB, and at most "
                            + "\(StatePart.mostState >> 20) MiB are exported"
                    )
                }
                if let first, first.savedAt != part.savedAt || first.bytes != part.bytes { break }
                first = part
                state += part.data
                if Int64(state.count) >= part.bytes { return (part.savedAt, state) }
                if part.data.isEmpty { break }
            }
        }
        throw DocumentFault("\(app) saves its state again and again: stop it first")
    }

    /// The SHA-256 of the state in hexadecimal; without a state, the SHA-256 of no bytes.
    package var digest: String {
        String(wire: Hex.text((state ?? []).withUnsafeBytes { Digest.sha256($0) }))
    }

    /// Gives the state and the mail to the app's supervisor. Nothing is given if the mailbox has no room for the mail.
    /// Returns how many messages an earlier import of the document brought, which are not posted again.
    ///
    /// - Parameter isClaimed: whether the caller has claimed the state on a server, which proves that it is the newest.
    ///   If so, the digest of the state is not sent.
    @discardableResult
    package func give(_ call: Call, isClaimed: Bool = false) throws(DocumentFault) -> Int {
        let mail = mail ?? []
        if !mail.isEmpty { try requireRoom(for: mail, call) }
        if let state {
            var offset = 0
            let digest = isClaimed ? nil : digest
            repeat {
                let part = state[offset..<min(state.count, offset + StatePart.mostBytes)]
                let request = ImportStateRequest(
                    app: app,
                    offset: Int64(offset),
                    bytes: Int64(state.count),
                    data: Array(part),
                    digest: digest
                )
                _ = try call(.importState(request))
                offset += part.count
            } while offset < state.count
        }
        return try post(mail, call)
    }

    /// Posts the messages: all of them, or none. Returns how many were posted before.
    private func post(_ mail: [MailInfo], _ call: Call) throws(DocumentFault) -> Int {
        var added: [Int64] = []
        var repeated = 0
        do throws(DocumentFault) {
            for message in mail {
                var request = PostRequest(app: app, topic: message.topic)
                request.payload = message.payload
                request.coalesce = "all"
                request.key = message.key
                request.urgent = message.wake != nil
                request.sender = message.sender
                request.remote = message.name == "didReceiveRemoteNotification"
                request.token = token(of: message)
                let reply = try call(.post(request))
                let result = try Self.read { () throws(FieldError) in try PostResult(json: reply) }
                if result.change == "repeated" { repeated += 1 }
                if result.change == "added", let id = result.id { added.append(id) }
            }
        } catch {
            if !added.isEmpty {
                var request = MailboxRequest(app: app)
                request.drop = added
                _ = try? call(.mailbox(request))
            }
            throw error
        }
        return repeated
    }

    /// A token that is computed from the message, so that a document which is imported twice posts each message only
    /// once.
    private func token(of message: MailInfo) -> RequestToken? {
        let bytes = Array("\(app) \(message.json)".utf8)
        let digest = bytes.withUnsafeBytes { Digest.sha256($0) }
        return RequestToken(text: String(wire: Hex.text(digest.prefix(8))))
    }
}
