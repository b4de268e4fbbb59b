// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Says something by sd_notify: lines of `NAME=value` to `NOTIFY_SOCKET`.
public enum NotifySpeech {
    /// Sends without waiting for anybody to read.
    public static func say(_ text: String, to socket: String) throws(Errno) {
        let connection = try Sockets.connect(path: socket, kind: .datagram, sendTimeout: .seconds(5))
        try connection.withRaw { raw throws(Errno) in
            guard try Sockets.send(raw, Array(text.utf8), wait: true) != nil else {
                throw Errno.resourceTemporarilyUnavailable
            }
        }
    }

    /// Waits until everything that this process has said was handled; false when the time is up.
    ///
    /// A program that ends before it was heard cannot be told from one that is not of the app.
    public static func settle(_ socket: String, timeout: Duration) throws(Errno) -> Bool {
        let connection = try Sockets.connect(path: socket, kind: .datagram, sendTimeout: timeout)
        let (ours, theirs) = try Descriptor.pipe()
        let sent = try connection.withRaw { raw throws(Errno) in
            try Sockets.send(raw, Array("BARRIER=1".utf8), descriptors: [theirs.raw], wait: true)
        }
        theirs.close()
        guard sent != nil else { return false }
        // Nobody writes: it is readable when the last one has closed the other end.
        return try ours.withRaw { raw throws(Errno) in try Descriptor.wait(raw, timeout: timeout) }
    }
}
