// SPDX-License-Identifier: Apache-2.0

/// Where systemd's journal takes entries in its native protocol. Sending never waits: libsystemd's `sd_journal_send`
/// would, as long as the journal has no room.
public final class JournalSocket {
    /// Where it is (systemd-journald.service(8)).
    public static let path = "/run/systemd/journal/socket"

    private let path: String
    private var socket: Descriptor?

    /// Nothing is connected yet.
    public init(path: String = JournalSocket.path) { self.path = path }

    /// Sends one entry, already encoded. False when it cannot be sent now: no journal listens, it has no room
    /// (EAGAIN), or the entry is larger than a datagram can be (EMSGSIZE).
    public func send(_ entry: [UInt8]) -> Bool {
        if let socket {
            do throws(Errno) {
                return try Sockets.send(socket.raw, entry) == entry.count
            } catch {
                // Another journal has taken the place of the one that was connected to.
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

    /// Whether a descriptor is the stream of the journal that `JOURNAL_STREAM` names: device and inode, decimal, with a
    /// colon between (systemd.exec(5)).
    public static func isStream(_ descriptor: Int32, named text: String?) -> Bool {
        guard let text, let status = try? File.status(descriptor: descriptor) else { return false }
        let numbers = text.split(separator: ":", omittingEmptySubsequences: false).map { UInt64($0) }
        return numbers.count == 2 && numbers[0] == status.device && numbers[1] == status.inode
    }

    /// What `JOURNAL_STREAM` says of a descriptor, for a program that has it as standard error.
    public static func streamName(of descriptor: Int32) -> String? {
        (try? File.status(descriptor: descriptor)).map { "\($0.device):\($0.inode)" }
    }
}
