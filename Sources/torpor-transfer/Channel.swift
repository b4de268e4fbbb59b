// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import Varlink

/// The socket to torpord. Messages may be lost without harm: after the next `hello`, everything except progress is
/// sent again.
final class Channel {
    /// The longest command in bytes: enough for a URL, 16 KiB of header fields, and the overhead of JSON.
    private static let longestCommand = 1 << 20

    let raw: Int32
    private let messages: MessageChannel

    init(_ raw: Int32) {
        self.raw = raw
        messages = MessageChannel(raw, limit: Self.longestCommand) { ThisProcess.complain("torpor-transfer: \($0)") }
    }

    /// Whether unsent bytes wait until the socket has room.
    var wantsToWrite: Bool { messages.wantsToWrite }

    /// Reads commands; nil once torpord has closed its end.
    func read() throws(Errno) -> [TransferCommand]? {
        try messages.read { json throws(FieldError) in try TransferCommand(json: json) }
    }

    /// Queues a report, and sends as much of the queue as the socket accepts.
    func say(_ report: TransferReport) {
        // While the socket is full, drop progress reports: a later one replaces them.
        if case .progress = report, wantsToWrite { return }
        messages.say(report.json)
    }

    func flush() { messages.flush() }
}
