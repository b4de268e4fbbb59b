// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// Who called, as the kernel says (SO_PEERCRED, SO_PEERGROUPS), at the time of connecting.
public struct Peer: Hashable, Sendable {
    /// Its process.
    public var pid: Int32
    /// Its user.
    public var uid: UInt32
    /// Its group.
    public var gid: UInt32
    /// Supplementary groups.
    public var groups: [UInt32]

    /// Makes one from its parts.
    public init(pid: Int32, uid: UInt32, gid: UInt32, groups: [UInt32]) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = groups
    }
}

/// An interface that the server offers, besides `org.varlink.service`.
public struct VarlinkInterface: Hashable, Sendable {
    /// Such as `io.torpor.Manager`.
    public var name: String
    /// The interface in Varlink's own language; the methods are taken from it.
    public var description: String

    /// Makes one from its parts.
    public init(name: String, description: String) {
        self.name = name
        self.description = description
    }

    /// The names of its methods.
    public var methods: Set<String> {
        var methods: Set<String> = []
        for line in description.utf8.split(separator: UInt8(ascii: "\n")) {
            let words = line.split(maxSplits: 2) { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "(") }
            guard words.count >= 2, words[0].elementsEqual("method".utf8) else { continue }
            methods.insert(String(wire: words[1]))
        }
        return methods
    }
}

/// The way back to the caller of one call. Keep it as long as replies are to follow; it never blocks.
///
/// Replies go out in the order of the calls on their connection: one that is early waits. A call that is `oneway` has
/// a Reply as well, whose replies go nowhere. Once it was finished, or the connection is gone, everything sent is
/// dropped without harm.
public final class Reply {
    /// Whether the caller takes more than one reply; if not, send only one.
    public let more: Bool
    /// The number of the caller's connection, which no other connection to the same socket has.
    public let connection: UInt64
    /// Called once, from the loop, when the connection is gone before the last reply; not after the last reply.
    public var onClosed: (() -> Void)?
    /// Whether nothing can be sent any more: finished, or the connection is gone.
    public private(set) var isClosed = false
    /// Whether the client has still to read some of what was sent. A stream that can wait goes on at `onRead`, so that
    /// a slow client is not dropped for what piles up.
    public internal(set) var isUnread = false
    /// Called from the loop each time the client has read everything that waited for it.
    public var onRead: (() -> Void)?

    private let output: (VarlinkResponse) -> Void

    /// A way back into any function; the server makes its own. Useful for tests.
    public init(more: Bool, connection: UInt64 = 0, output: @escaping (VarlinkResponse) -> Void) {
        self.more = more
        self.connection = connection
        self.output = output
    }

    /// Sends results. With `continues` more follow; to a caller that did not ask for more, it is the last all the same.
    public func send(_ parameters: JSON = .emptyObject, continues: Bool = false) {
        guard !isClosed else { return }
        let continues = continues && more
        finish(unless: continues)
        output(VarlinkResponse(parameters: parameters, continues: continues))
    }

    /// Ends the call with an error, given by its full name.
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

    /// Everything that waited for the client is on its way.
    func hasBeenRead() {
        guard isUnread else { return }
        isUnread = false
        onRead?()
    }

    /// The connection is gone.
    func connectionClosed() {
        guard !isClosed else { return }
        isClosed = true
        let handler = onClosed
        onClosed = nil
        onRead = nil
        handler?()
    }
}
