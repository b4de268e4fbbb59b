// SPDX-License-Identifier: Apache-2.0

public import Linux

/// A socket of an app could not be made; the description is a sentence that says what to do.
public struct NotifySocketError: Error, CustomStringConvertible {
    /// The sentence.
    public let description: String
}

/// Room for the longest datagram that is read.
public final class DatagramBuffer {
    var bytes = [UInt8](repeating: 0, count: NotifyMessage.maximumLength)

    /// Room of its own.
    public init() {}
}

/// The socket behind one app's `NOTIFY_SOCKET`.
///
/// Never blocks. Descriptors that come are not opened here: the close of one may wait for whoever made it.
public final class NotifySocket {
    /// A datagram, and who sent it.
    public struct Received {
        /// What it said; its warnings also name what was lost on the way.
        public var message: NotifyMessage
        /// The sender by the kernel's word: pid, uid, gid. The pid is 0 for a sender of another pid namespace.
        public var pid: Int32
        /// The sender's user.
        public var uid: UInt32
        /// The sender's group.
        public var gid: UInt32
        /// Whether descriptors came along.
        public var hasDescriptors: Bool
    }

    /// The path, for `NOTIFY_SOCKET`.
    public var path: String { place.text }
    /// To be watched for reading.
    public let descriptor: Descriptor
    private let place: SharedPath
    private let buffer: DatagramBuffer

    /// Binds the socket, replacing one that was left there.
    ///
    /// The mode is wide by default, since an app may give up its user before it speaks: who is heard is decided by
    /// the credentials of each datagram. `owner` needs root.
    ///
    /// All sockets of one thread can share a `buffer`.
    public init(
        path place: SharedPath,
        mode: UInt32 = 0o666,
        owner: (uid: UInt32, gid: UInt32)? = nil,
        buffer: DatagramBuffer = DatagramBuffer()
    ) throws(NotifySocketError) {
        self.place = place
        self.buffer = buffer
        let path = place.text
        let length = path.utf8.count
        if length > Sockets.longestPath {
            throw NotifySocketError(
                description: "the socket path \(path) has \(length) bytes and Linux allows \(Sockets.longestPath): "
                    + "choose a shorter runtime_directory"
            )
        }
        do throws(Errno) {
            descriptor = try Sockets.bindDatagram(path: path, mode: mode, receiveBuffer: 1 << 20)
            if let owner { try File.setOwner(path, uid: owner.uid, gid: owner.gid) }
        } catch {
            let sentence =
                error == .addressInUse
                ? "\(path) is in the way and is not a socket: remove it, or choose another runtime_directory"
                : "could not make the notification socket \(path): \(error.description.lowercased())"
            throw NotifySocketError(description: sentence)
        }
    }

    /// Goes on with a socket that an earlier daemon bound at `path`, as the keeper gives it back.
    public init(taking descriptor: Descriptor, path place: SharedPath, buffer: DatagramBuffer) {
        self.place = place
        self.descriptor = descriptor
        self.buffer = buffer
    }

    /// The next datagram, or nil if none waits. It stays in the socket until ``drop()``: what it says is not lost with a
    /// daemon that dies before it has acted on it, and the next one reads it again. A datagram without credentials is
    /// dropped at once.
    public func peek() -> Received? {
        while let datagram = look() {
            guard let sender = datagram.sender else {
                drop(withDescriptors: datagram.controlTruncated)
                continue
            }
            var message = NotifyMessage(parsing: datagram.bytes)
            if datagram.dataTruncated {
                message.warnings.append("the datagram was longer than \(buffer.bytes.count) bytes: its end is lost")
            }
            return Received(
                message: message,
                pid: sender.pid,
                uid: sender.uid,
                gid: sender.gid,
                hasDescriptors: datagram.controlTruncated
            )
        }
        return nil
    }

    // With no room for descriptors the kernel says that there are some.
    private func look() -> ReceivedMessage? {
        let found = try? Sockets.receive(descriptor.raw, into: &buffer.bytes, maximumDescriptors: 0, leaving: true)
        return found ?? nil
    }

    /// Takes away the datagram that was peeked at. What came along is let go of, unopened.
    public func drop(_ received: Received) { drop(withDescriptors: received.hasDescriptors) }

    private func drop(withDescriptors: Bool) {
        if withDescriptors {
            Promptly.run { Sockets.drop(descriptor.raw) }
        } else {
            Sockets.drop(descriptor.raw)
        }
    }

    /// The next datagram, taken away; nil if none waits.
    public func receive() -> Received? {
        guard let received = peek() else { return nil }
        drop(received)
        return received
    }

    /// Closes the socket and removes its path.
    public func close() {
        descriptor.close()
        try? File.remove(path)
    }
}
