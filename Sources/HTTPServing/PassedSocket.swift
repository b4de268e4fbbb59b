// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Listening sockets that the program's parent passed (sd_listen_fds(3)).
public enum PassedSocket {
    /// The first passed socket, close-on-exec and non-blocking; nil if there is none.
    public static func first() -> Descriptor? {
        guard ThisProcess.environment("LISTEN_PID") == String(ThisProcess.pid),
            let count = ThisProcess.environment("LISTEN_FDS").flatMap({ Int($0) }), count >= 1
        else { return nil }
        let socket = Descriptor(owning: 3)
        try? Descriptor.setCloseOnExec(socket.raw)
        try? Descriptor.setNonBlocking(socket.raw)
        return socket
    }
}

/// Shows all threads of the program whether the program was asked to end.
public final class Stop: Sendable {
    /// Becomes readable when the program must end.
    public let counter: EventCounter

    /// Listens to SIGTERM and SIGINT. Throws if no file descriptor is left.
    public init() throws(Errno) {
        counter = try EventCounter()
        for number in [Signal.terminate, Signal.interrupt] { try Signal.count(number, with: counter) }
    }

    /// Whether the program must end.
    public var isRequested: Bool { wait(.zero) }

    /// Waits for this time at most. Returns true as soon as the program must end, otherwise false.
    public func wait(_ time: Duration?) -> Bool { (try? Descriptor.wait(counter.raw, timeout: time)) ?? true }
}
