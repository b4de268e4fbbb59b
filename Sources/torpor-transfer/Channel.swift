// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import Varlink

/// The socket to torpord. A lost message is no harm: all but progress is repeated after the next `hello`.
final class Channel {
    /// The longest command in bytes: a URL, 16 KiB of header fields, and JSON's overhead.
    private static let longestCommand = 1 << 20

    let raw: Int32
    private let messages: MessageChannel

    init(_ raw: Int32) {
        self.raw = raw
        messages = MessageChannel(raw, limit: Self.longestCommand) { ThisProcess.complain("torpor-transfer: \($0)") }
    }

    /// Whether unsent bytes wait for room in the socket.
    var wantsToWrite: Bool { messages.wantsToWrite }

    /// Reads commands; nil once the other end is closed.
    func read() throws(Errno) -> [TransferCommand]? {
        try messages.read { json throws(FieldError) in try TransferCommand(json: json) }
    }

    /// Queues a report and sends as much as the socket takes.
    func say(_ report: TransferReport) {
        // Drop progress while the socket is full: a later report replaces it.
        if case .progress = report, wantsToWrite { return }
        messages.say(report.json)
    }

    func flush() { messages.flush() }
}
