// SPDX-License-Identifier: Apache-2.0

import CNATS
import Gateway
import GatewayConfiguration
import Linux
import StateDocuments
import WireText

/// Why a state cannot be read from the server or stored there.
enum StateTrouble: Error, CustomStringConvertible {
    /// The server or the supervisor does not answer, or cannot carry out the request now. A retry may succeed.
    case away(String)
    /// Another message about the app was sent since the last one that this machine knows.
    case overtaken
    /// The state is larger than the server accepts.
    case tooLarge(String)
    /// A retry would fail in the same way.
    case wrong(String)

    var description: String {
        switch self {
        case .away(let sentence), .tooLarge(let sentence), .wrong(let sentence): sentence
        case .overtaken: "another machine has claimed the state since"
        }
    }
}

/// A connection to the NATS server with the saved states: a JetStream stream that has one message for each app. Not
/// thread-safe. A lost connection is not restored: make a new object.
final class StateServer {
    /// The last message about an app's state in the stream.
    struct Message {
        /// The number of the message in the stream.
        var sequence: UInt64
        /// The claim that the message belongs to (``StateTokens``); empty if another program has sent the message.
        var claim: String
        /// The name of the machine that sent the message.
        var node: String
        /// Whether that machine no longer owns the app, and has pushed the state that the app saved last.
        var isReleased: Bool
        /// The content of the message. It should be a ``StateDocument``, but was not checked yet.
        var bytes: [UInt8]
    }

    private let states: GatewayStates
    private let node: String
    private var connection: OpaquePointer?
    private var stream: OpaquePointer?

    private static let claimHeader = "Torpor-Claim"
    private static let nodeHeader = "Torpor-Node"
    private static let releasedHeader = "Torpor-Released"
    /// The bytes of a message besides the document, for its subject and headers.
    private static let overhead = 1024
    /// How long to wait for a reply of the server, in milliseconds.
    private static let patience: Int64 = 5_000

    /// Connects. If `create` is set in the configuration and the stream is missing, creates the stream.
    init(_ states: GatewayStates, _ login: NATSLogin, node: String) throws(StateTrouble) {
        (self.states, self.node) = (states, node)
        var options: OpaquePointer?
        guard natsOptions_Create(&options) == NATS_OK, let options else { throw .away("out of memory") }
        defer { natsOptions_Destroy(options) }
        let steps =
            login.set(options)
            + [natsOptions_SetTimeout(options, Self.patience), natsOptions_SetAllowReconnect(options, false)]
        var status = steps.first { $0 != NATS_OK } ?? NATS_OK
        if status == NATS_OK { status = natsConnection_Connect(&connection, options) }
        guard status == NATS_OK else {
            throw .away("no connection to \(states.broker.url): \(NATSSource.text(status))")
        }
        var context = jsOptions()
        jsOptions_Init(&context)
        context.Wait = Self.patience
        status = natsConnection_JetStream(&stream, connection, &context)
        guard status == NATS_OK else { throw .away("\(states.broker.url): \(NATSSource.text(status))") }
        if states.create { try makeStream() }
    }

    deinit {
        jsCtx_Destroy(stream)
        natsConnection_Destroy(connection)
    }

    private func makeStream() throws(StateTrouble) {
        var code = jsErrCode(0)
        let status = states.stream.withCString { name in
            "\(states.subject).*".withCString { subject in
                var subjects: [UnsafePointer<CChar>?] = [subject]
                return subjects.withUnsafeMutableBufferPointer { subjects in
                    var configuration = jsStreamConfig()
                    jsStreamConfig_Init(&configuration)
                    configuration.Name = name
                    configuration.Subjects = subjects.baseAddress
                    configuration.SubjectsLen = 1
                    configuration.Storage = js_FileStorage
                    configuration.Replicas = Int64(states.replicas)
                    // Each message contains the whole state, so the stream needs to store only the last message about
                    // each app.
                    configuration.MaxMsgsPerSubject = 1
                    return js_AddStream(nil, stream, &configuration, nil, &code)
                }
            }
        }
        // Error 10058 of JetStream: the stream exists, with other settings.
        guard status == NATS_OK || code.rawValue == 10_058 else {
            throw trouble(status, code, "the stream \(states.stream) cannot be made")
        }
    }

    /// The subject of messages about an app's state. A dot in the app's name is encoded, since a dot separates the
    /// parts of a subject.
    private func subject(_ app: String) -> String { states.subject + "." + app.replacing(".", with: "%2E") }

    /// The last message about the app's state in the stream; nil if there is none.
    func last(_ app: String) throws(StateTrouble) -> Message? {
        var code = jsErrCode(0)
        var found: OpaquePointer?
        let status = js_GetLastMsg(&found, stream, states.stream, subject(app), nil, &code)
        // Error 10037 of JetStream: the stream has no message with this subject.
        if code.rawValue == 10_037 { return nil }
        guard status == NATS_OK, let found else {
            throw trouble(status, code, "the state of \(app) cannot be read from the stream \(states.stream)")
        }
        defer { natsMsg_Destroy(found) }
        let size = Int(natsMsg_GetDataLength(found))
        guard size <= StateDocument.mostBytes else {
            throw .wrong("the message about \(app) in the stream \(states.stream) has \(size) bytes, and is no state")
        }
        return Message(
            sequence: natsMsg_GetSequence(found),
            claim: Self.header(found, Self.claimHeader),
            node: Self.header(found, Self.nodeHeader),
            isReleased: Self.header(found, Self.releasedHeader) == "yes",
            bytes: size == 0 ? [] : Array(UnsafeRawBufferPointer(start: natsMsg_GetData(found), count: size))
        )
    }

    private static func header(_ message: OpaquePointer, _ name: String) -> String {
        var value: UnsafePointer<CChar>?
        guard natsMsgHeader_Get(message, name, &value) == NATS_OK, let value else { return "" }
        // The text comes from outside, and users see it on their terminals.
        return String(String(terminatedWire: value).unicodeScalars.prefix(128)).onOneLine
    }

    /// Stores a state on the server, provided that the last message about the app has the number `expected` (0: there
    /// is no message). If the last message has another number, the server refuses the state
    /// (``StateTrouble/overtaken``). Returns the number of the new message.
    func keep(
        _ bytes: [UInt8],
        of app: String,
        claim: String,
        isReleased: Bool,
        expected: UInt64
    ) throws(StateTrouble) -> UInt64 {
        let most = Int(natsConnection_GetMaxPayload(connection)) - Self.overhead
        guard bytes.count <= most else {
            throw .tooLarge(
                "the state of \(app) has \(bytes.count) bytes, and the server takes messages of \(most): raise "
                    + "max_payload of the server of NATS, or have the app save less"
            )
        }
        var message: OpaquePointer?
        let made = bytes.withUnsafeBytes { bytes in
            natsMsg_Create(
                &message,
                subject(app),
                nil,
                bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
                Int32(bytes.count)
            )
        }
        guard made == NATS_OK, let message else { throw .away("out of memory") }
        defer { natsMsg_Destroy(message) }
        var headers = [
            (Self.claimHeader, claim), (Self.nodeHeader, node), ("Nats-Expected-Stream", states.stream),
            ("Nats-Expected-Last-Subject-Sequence", "\(expected)"),
        ]
        if isReleased { headers.append((Self.releasedHeader, "yes")) }
        for (name, value) in headers where natsMsgHeader_Set(message, name, value) != NATS_OK {
            throw .away("out of memory")
        }
        var code = jsErrCode(0)
        var acknowledgement: UnsafeMutablePointer<jsPubAck>?
        let status = js_PublishMsg(&acknowledgement, stream, message, nil, &code)
        defer { jsPubAck_Destroy(acknowledgement) }
        // Error 10071 of JetStream: the last message has another number.
        if code.rawValue == 10_071 { throw .overtaken }
        // Error 10054 of JetStream: the message is larger than the stream permits.
        if code.rawValue == 10_054 {
            throw .tooLarge(
                "the state of \(app) has \(bytes.count) bytes, more than the stream \(states.stream) takes: raise its "
                    + "max_msg_size, or have the app save less"
            )
        }
        guard status == NATS_OK, let acknowledgement else {
            throw trouble(status, code, "the state of \(app) cannot be kept in the stream \(states.stream)")
        }
        return acknowledgement.pointee.Sequence
    }

    private func trouble(_ status: natsStatus, _ code: jsErrCode, _ what: String) -> StateTrouble {
        switch Int(code.rawValue) {
        case 10_059: .away("\(what): there is no such stream (create = true makes it)")
        case 10_060: .wrong("\(what): the subject \(states.subject) belongs to another stream")
        case 10_039: .away("\(what): the server has no JetStream for this account")
        case 0 where status == NATS_NO_RESPONDERS: .away("\(what): no stream takes the subject \(states.subject).*")
        case 0: .away("\(what): \(NATSSource.text(status))")
        default: .away("\(what): \(NATSSource.text(status)), error \(code.rawValue) of JetStream")
        }
    }
}
