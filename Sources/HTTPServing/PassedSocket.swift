// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Listening sockets that whoever started this program has passed on (sd_listen_fds(3)).
public enum PassedSocket {
    /// The first one, close-on-exec and non-blocking; nil where there is none.
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

/// That a program shall end, for all its threads.
public final class Stop: Sendable {
    /// Readable once it shall.
    public let counter: EventCounter

    /// Listens to SIGTERM and SIGINT. Errors: out of descriptors.
    public init() throws(Errno) {
        counter = try EventCounter()
        for number in [Signal.terminate, Signal.interrupt] { try Signal.count(number, with: counter) }
    }

    /// Whether it shall end.
    public var isRequested: Bool { wait(.zero) }

    /// Waits so long; true as soon as it shall end.
    public func wait(_ time: Duration?) -> Bool { (try? Descriptor.wait(counter.raw, timeout: time)) ?? true }
}
