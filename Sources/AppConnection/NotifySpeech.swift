// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Sends sd_notify(3) messages: lines of `NAME=value` to `NOTIFY_SOCKET`.
public enum NotifySpeech {
    /// Sends a message, without waiting until the receiver has read it.
    public static func say(_ text: String, to socket: String) throws(Errno) {
        let connection = try Sockets.connect(path: socket, kind: .datagram, sendTimeout: .seconds(5))
        try connection.withRaw { raw throws(Errno) in
            guard try Sockets.send(raw, Array(text.utf8), wait: true) != nil else {
                throw Errno.resourceTemporarilyUnavailable
            }
        }
    }

    /// Waits until all messages of this process were handled; false after the timeout.
    ///
    /// A process that does not wait may end before its messages are read. The supervisor then cannot tell which app
    /// sent them.
    public static func settle(_ socket: String, timeout: Duration) throws(Errno) -> Bool {
        let connection = try Sockets.connect(path: socket, kind: .datagram, sendTimeout: timeout)
        let (ours, theirs) = try Descriptor.pipe()
        let sent = try connection.withRaw { raw throws(Errno) in
            try Sockets.send(raw, Array("BARRIER=1".utf8), descriptors: [theirs.raw], wait: true)
        }
        theirs.close()
        guard sent != nil else { return false }
        // No process writes to the pipe: it becomes readable (end of file) when the last process has closed the other
        // end.
        return try ours.withRaw { raw throws(Errno) in try Descriptor.wait(raw, timeout: timeout) }
    }
}
