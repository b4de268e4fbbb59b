// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing

/// A service manager that only listens: what it was told by NOTIFY_SOCKET, a line at a time.
final class ListeningManager {
    private let folder: String
    private let socket: Descriptor
    /// All lines so far.
    private(set) var lines: [String] = []

    init() throws {
        folder = try Daemon.makeFolder()
        socket = try Sockets.bindDatagram(path: folder + "/notify")
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    var environment: [String: String] { ["NOTIFY_SOCKET": folder + "/notify"] }

    /// Reads what waits; whether one of the lines since `mark` is the wanted one.
    func heard(since mark: Int = 0, _ isWanted: (String) -> Bool) -> Bool {
        while let bytes = try? Descriptor.read(socket.raw, maximum: 65536), !bytes.isEmpty {
            lines += String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        return lines[min(mark, lines.count)...].contains(where: isWanted)
    }

    /// Stops the daemon, and reads what it says until it has ended: torpor-closer waits until its last message is read.
    func stop(_ daemon: Daemon) throws {
        kill(daemon.pid, SIGTERM)
        try daemon.eventually("the daemon ends") {
            let hasEnded = daemon.reap() != nil
            _ = heard { _ in false }
            return hasEnded
        }
        try daemon.stop()
    }

    /// Waits for a line.
    func wait(
        for what: String,
        of daemon: Daemon,
        since mark: Int = 0,
        _ isWanted: @escaping (String) -> Bool
    ) throws {
        try daemon.eventually("the service manager is told \(what)") { heard(since: mark, isWanted) }
    }

    func wait(for line: String, of daemon: Daemon, since mark: Int = 0) throws {
        try wait(for: line, of: daemon, since: mark) { $0 == line }
    }
}
