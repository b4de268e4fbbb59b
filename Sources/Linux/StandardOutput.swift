import Glibc

/// Standard output of this process.
public enum StandardOutput {
    /// Writes all of it, at once; false when nobody reads it any more or the disk is full.
    @discardableResult
    public static func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = Glibc.write(1, bytes.baseAddress! + sent, bytes.count - sent)
                if count < 0 {
                    guard errno == EINTR || errno == EAGAIN else { return false }
                    if errno == EAGAIN {
                        var entry = pollfd(fd: 1, events: Int16(POLLOUT), revents: 0)
                        _ = poll(&entry, 1, 1000)
                    }
                    continue
                }
                sent += count
            }
            return true
        }
    }
}
