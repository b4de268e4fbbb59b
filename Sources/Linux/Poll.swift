import Glibc

/// Waiting for one descriptor, for the few places that must have an answer before they can go on.
public enum Poll {
    /// Waits until `fd` has something to read or its other end is gone; false when the time is over first.
    public static func readable(_ fd: Int32, within timeout: Duration) throws(Errno) -> Bool {
        let deadline = Clock.monotonic() + timeout
        while true {
            var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
            let rest = max(0, (deadline - Clock.monotonic()).microseconds)
            let result = poll(&entry, 1, Int32(clamping: (rest + 999) / 1000))
            if result > 0 { return true }
            if result == 0 { return false }
            let code = errno
            if code != EINTR { throw Errno(rawValue: code) }
        }
    }
}
