// SPDX-License-Identifier: Apache-2.0

/// Sends entries to systemd's journal in the journal's native protocol. Unlike libsystemd's `sd_journal_send`, it
/// never blocks when the journal's socket is full.
public final class JournalSocket {
    /// The journal's socket (systemd-journald.service(8)).
    public static let path = "/run/systemd/journal/socket"

    private let path: String
    private var socket: Descriptor?

    /// Creates an unconnected socket. The first ``send(_:)`` connects it.
    public init(path: String = JournalSocket.path) { self.path = path }

    /// Sends one encoded entry. Returns false if the journal does not listen, if its socket is full (EAGAIN), or if the
    /// entry is larger than a datagram may be (EMSGSIZE).
    public func send(_ entry: [UInt8]) -> Bool {
        if let socket {
            do throws(Errno) {
                return try Sockets.send(socket.raw, entry) == entry.count
            } catch {
                // The journal was restarted: reconnect.
                self.socket = nil
                guard error == .connectionRefused || error == .socketNotConnected else { return false }
            }
        }
        do throws(Errno) {
            let new = try Sockets.connect(path: path, kind: .datagram, nonBlocking: true)
            socket = new
            return try Sockets.send(new.raw, entry) == entry.count
        } catch {
            return false
        }
    }

    /// Whether a descriptor is the journal stream that the value of `JOURNAL_STREAM` identifies by device and inode
    /// number: two decimal numbers, separated by a colon (systemd.exec(5)).
    public static func isStream(_ descriptor: Int32, named text: String?) -> Bool {
        guard let text, let status = try? File.status(descriptor: descriptor) else { return false }
        let numbers = text.split(separator: ":", omittingEmptySubsequences: false).map { UInt64($0) }
        return numbers.count == 2 && numbers[0] == status.device && numbers[1] == status.inode
    }

    /// The value of `JOURNAL_STREAM` for a program whose standard error is this descriptor.
    public static func streamName(of descriptor: Int32) -> String? {
        (try? File.status(descriptor: descriptor)).map { "\($0.device):\($0.inode)" }
    }
}
