// SPDX-License-Identifier: Apache-2.0

public import Linux

/// An app's socket could not be created; the description is a sentence that says what to do.
public struct NotifySocketError: Error, CustomStringConvertible {
    /// The sentence.
    public let description: String
}

/// A buffer for the longest datagram.
public final class DatagramBuffer {
    var bytes = [UInt8](repeating: 0, count: NotifyMessage.maximumLength)

    /// Allocates the buffer.
    public init() {}
}

/// The socket behind one app's `NOTIFY_SOCKET`.
///
/// Never blocks. Received descriptors are not opened here, since closing one may block on the process that provides
/// it.
public final class NotifySocket {
    /// A datagram and its sender.
    public struct Received {
        /// Its content; the warnings also report what was truncated.
        public var message: NotifyMessage
        /// The sender's pid by the kernel; 0 if it is in another pid namespace.
        public var pid: Int32
        /// The sender's uid.
        public var uid: UInt32
        /// The sender's gid.
        public var gid: UInt32
        /// Whether it carries descriptors.
        public var hasDescriptors: Bool
    }

    /// The value of `NOTIFY_SOCKET`.
    public var path: String { place.text }
    /// The descriptor to watch for reading.
    public let descriptor: Descriptor
    private let place: SharedPath
    private let buffer: DatagramBuffer

    /// Binds the socket, replacing an old one.
    ///
    /// The default mode lets every user write, since an app may change its user before it notifies; each datagram is
    /// accepted or refused by its credentials. `owner` needs root.
    ///
    /// All sockets of one thread may share a `buffer`.
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

    /// Takes over the socket that an earlier daemon bound at `path`, from the keeper.
    public init(taking descriptor: Descriptor, path place: SharedPath, buffer: DatagramBuffer) {
        self.place = place
        self.descriptor = descriptor
        self.buffer = buffer
    }

    /// The next datagram; nil if there is none. It stays queued until ``drop(_:)``, so that the next daemon reads it
    /// again if this one dies before acting on it. A datagram without credentials is dropped at once.
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

    // Without room for descriptors, the kernel only reports that there are some (MSG_CTRUNC).
    private func look() -> ReceivedMessage? {
        let found = try? Sockets.receive(descriptor.raw, into: &buffer.bytes, maximumDescriptors: 0, leaving: true)
        return found ?? nil
    }

    /// Drops the datagram that was peeked. Its descriptors are discarded unopened.
    public func drop(_ received: Received) { drop(withDescriptors: received.hasDescriptors) }

    private func drop(withDescriptors: Bool) {
        if withDescriptors {
            Promptly.run { Sockets.drop(descriptor.raw) }
        } else {
            Sockets.drop(descriptor.raw)
        }
    }

    /// Receives the next datagram; nil if there is none.
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
