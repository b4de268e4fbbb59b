// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Why a notification socket could not be created.
public struct NotifySocketError: Error, CustomStringConvertible {
    /// The reason, and what to do about it, as a sentence.
    public let description: String
}

/// A buffer that is large enough for the longest datagram.
public final class DatagramBuffer {
    private let mapping = Mapping(size: NotifyMessage.maximumLength)
    var bytes: UnsafeMutableRawBufferPointer { mapping.bytes }

    /// Allocates the buffer.
    public init() {}
}

/// The socket that one app's `NOTIFY_SOCKET` names.
///
/// Its functions never block. This class does not receive the descriptors that come with a datagram, because closing
/// such a descriptor may block on the process that provides its file.
public final class NotifySocket {
    /// A datagram and its sender.
    public struct Received {
        /// The content of the datagram. Its warnings also say what was truncated.
        public var message: NotifyMessage
        /// The sender's pid, as the kernel reports it; 0 if the sender is in another pid namespace.
        public var pid: Int32
        /// The sender's uid.
        public var uid: UInt32
        /// The sender's gid.
        public var gid: UInt32
        /// When it was sent or first looked at, in nanoseconds since 1970; nil if no descriptors came with it, or if the
        /// kernel does not record that. Tells equal datagrams apart.
        public var sent: Int64?
        /// Whether descriptors came with the datagram.
        public var hasDescriptors: Bool
    }

    /// The value of `NOTIFY_SOCKET`.
    public var path: String { place.text }
    /// The descriptor to watch for reading.
    public let descriptor: Descriptor
    private let place: SharedPath
    private let buffer: DatagramBuffer

    /// Binds the socket, and replaces an old socket at the path.
    ///
    /// The default mode lets every user write, because an app may change its user before it notifies. The caller
    /// accepts or refuses each datagram by its credentials. Setting an `owner` needs root.
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
            // Descriptors that linger may wait in it.
            descriptor.closesPromptly = true
            if let owner { try File.setOwner(path, uid: owner.uid, gid: owner.gid) }
        } catch {
            let sentence =
                error == .addressInUse
                ? "\(path) is in the way and is not a socket: remove it, or choose another runtime_directory"
                : "could not make the notification socket \(path): \(error.description.lowercased())"
            throw NotifySocketError(description: sentence)
        }
    }

    /// Takes over the socket that an earlier torpord bound at this path; the keeper held it.
    public init(taking descriptor: Descriptor, path place: SharedPath, buffer: DatagramBuffer) {
        self.place = place
        self.descriptor = descriptor
        self.buffer = buffer
        // That torpord may have died while it was on.
        try? Sockets.stampDatagrams(descriptor.raw, false)
        descriptor.closesPromptly = true
    }

    /// The next datagram; nil if there is none. The datagram stays queued until ``drop(_:)``: if torpord dies before
    /// it has handled the datagram, the next torpord reads it again. A datagram without credentials is dropped at
    /// once.
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
                sent: datagram.sent,
                hasDescriptors: datagram.controlTruncated
            )
        }
        return nil
    }

    // The times are on only while they are read. With them, a torpord of a version that leaves no room for them would
    // not get the senders: it may take over this socket after a downgrade, or after an upgrade that failed.
    private func look() -> ReceivedMessage? {
        guard let found = look(stamped: false) else { return nil }
        guard found.controlTruncated, (try? Sockets.stampDatagrams(descriptor.raw, true)) != nil else { return found }
        defer { try? Sockets.stampDatagrams(descriptor.raw, false) }
        return look(stamped: true) ?? found
    }

    // Leaves no room for descriptors, so that the kernel only reports that there are some (MSG_CTRUNC).
    private func look(stamped: Bool) -> ReceivedMessage? {
        let found = try? Sockets.receiveMessage(
            descriptor.raw,
            into: buffer.bytes,
            maximumDescriptors: 0,
            leaving: true,
            stamped: stamped
        )
        return found ?? nil
    }

    /// Removes the datagram that ``peek()`` returned from the queue, together with the descriptors that came with it.
    public func drop(_ received: Received) { drop(withDescriptors: received.hasDescriptors) }

    private func drop(withDescriptors: Bool) {
        if withDescriptors {
            Promptly.run { Sockets.drop(descriptor.raw) }
        } else {
            Sockets.drop(descriptor.raw)
        }
    }

    /// Returns the next datagram and removes it from the queue; nil if there is none.
    public func receive() -> Received? {
        guard let received = peek() else { return nil }
        drop(received)
        return received
    }

    /// Closes the socket and removes its file.
    public func close() {
        descriptor.close()
        try? File.remove(path)
    }
}
