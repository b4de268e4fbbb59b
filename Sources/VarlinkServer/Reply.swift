// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// The client, identified by the kernel when it connected (SO_PEERCRED, SO_PEERGROUPS).
public struct Peer: Hashable, Sendable {
    /// The pid of the process.
    public var pid: Int32
    /// The client's user (uid).
    public var uid: UInt32
    /// The client's group (gid).
    public var gid: UInt32
    /// The client's supplementary groups.
    public var groups: [UInt32]

    /// Memberwise initializer.
    public init(pid: Int32, uid: UInt32, gid: UInt32, groups: [UInt32]) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = groups
    }
}

/// An interface that the server offers, besides `org.varlink.service`.
public struct VarlinkInterface: Hashable, Sendable {
    /// The interface's name, such as `io.torpor.Manager`.
    public var name: String
    /// The interface definition in Varlink's language; the server takes the names of the methods from this text.
    public var description: String

    /// Memberwise initializer.
    public init(name: String, description: String) {
        self.name = name
        self.description = description
    }

    /// The names of the interface's methods.
    public var methods: Set<String> {
        var methods: Set<String> = []
        let text = Array(description.utf8)
        let isBetweenWords = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "(") }
        var start = 0
        while start < text.count {
            let line = text[start..<(text[start...].firstIndex(of: UInt8(ascii: "\n")) ?? text.count)]
            start = line.endIndex + 1
            let words = line.drop(while: isBetweenWords)
            guard words.starts(with: "method".utf8), let next = words.dropFirst(6).first, isBetweenWords(next) else {
                continue
            }
            let name = words.dropFirst(6).drop(while: isBetweenWords).prefix { !isBetweenWords($0) }
            if !name.isEmpty { methods.insert(String(wire: name)) }
        }
        return methods
    }
}

/// Sends the replies to one call. Keep it until the last reply is sent; it never blocks.
///
/// Replies are sent in the order of the connection's calls: a reply waits until all earlier calls are answered. A
/// `oneway` call has a Reply too, which discards everything. Replies after the last one, or after the connection has
/// closed, are discarded.
public final class Reply {
    /// Whether the caller accepts several replies; otherwise send only one.
    public let more: Bool
    /// The number of the caller's connection, unique for its socket.
    public let connection: UInt64
    /// Called once, on the event loop, if the connection closes before the last reply.
    public var onClosed: (() -> Void)?
    /// Whether nothing more can be sent, because the last reply was sent or the connection has closed.
    public private(set) var isClosed = false
    /// Whether the client has not read everything yet. A stream that can wait should continue in `onRead`: otherwise a
    /// slow client would be disconnected because of unread data.
    public internal(set) var isUnread = false
    /// Called on the event loop each time the client has read everything.
    public var onRead: (() -> Void)?

    private let output: (VarlinkResponse) -> Void
    private let outputText: ((_ write: (inout JSONWriter) -> Void) -> Void)?

    /// A Reply that calls any function, for tests.
    public convenience init(more: Bool, connection: UInt64 = 0, output: @escaping (VarlinkResponse) -> Void) {
        self.init(more: more, connection: connection, output: output, text: nil)
    }

    /// - Parameter text: receives the results that are sent by ``sendText(_:)``; if it is nil, `output` receives them.
    init(
        more: Bool,
        connection: UInt64,
        output: @escaping (VarlinkResponse) -> Void,
        text: ((_ write: (inout JSONWriter) -> Void) -> Void)?
    ) {
        self.more = more
        self.connection = connection
        self.output = output
        self.outputText = text
    }

    /// Sends the last results as JSON text: `write` appends an object. This takes less time than
    /// ``send(_:continues:)``: use it for results that are large or often requested.
    public func sendText(_ write: (inout JSONWriter) -> Void) {
        guard !isClosed else { return }
        finish(unless: false)
        if let outputText { return outputText(write) }
        var writer = JSONWriter()
        write(&writer)
        let parameters = writer.withBytes { try? JSON.parse([UInt8]($0)) }
        output(VarlinkResponse(parameters: parameters ?? .emptyObject))
    }

    /// Sends results. With `continues`, more replies follow if the caller asked for several replies (`more`).
    public func send(_ parameters: JSON = .emptyObject, continues: Bool = false) {
        guard !isClosed else { return }
        let continues = continues && more
        finish(unless: continues)
        output(VarlinkResponse(parameters: parameters, continues: continues))
    }

    /// Ends the call with an error, given by its fully qualified name.
    public func fail(_ error: String, _ parameters: JSON) {
        guard !isClosed else { return }
        finish(unless: false)
        output(VarlinkResponse(parameters: parameters, error: error))
    }

    /// Ends the call with `org.varlink.service.InvalidParameter`.
    public func fail(_ error: FieldError) {
        fail(VarlinkErrorName.invalidParameter, ["parameter": .string(error.field), "message": .string("\(error)")])
    }

    private func finish(unless continues: Bool) {
        guard !continues else { return }
        isClosed = true
        onClosed = nil
        onRead = nil
    }

    /// Called when the client has read everything.
    func hasBeenRead() {
        guard isUnread else { return }
        isUnread = false
        onRead?()
    }

    /// Called when the connection has closed.
    func connectionClosed() {
        guard !isClosed else { return }
        isClosed = true
        let handler = onClosed
        onClosed = nil
        onRead = nil
        handler?()
    }
}
