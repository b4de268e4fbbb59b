// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import WireText

/// A line by which a script answers the message that it is handling: `done`, `unhandled`, `failed TEXT`, `pending
/// DURATION TEXT`, `decline WHAT` or `fetch WHAT`.
enum DelegateLine: Equatable {
    case done
    case unhandled
    case failed(String)
    case pending(milliseconds: Int64, text: String)
    case decline(AppAnswer.Declined)
    case fetch(AppAnswer.Fetched)

    /// The error for an unknown line. The description lists the known lines.
    struct NotUnderstood: Error, CustomStringConvertible {
        let line: String
        /// Whether the line was meant to end the answer: it is not empty, and begins with none of the words that need
        /// another line behind theirs. Another line answers `done`, and the text of that answer says what is wrong.
        var isLast: Bool {
            guard let word = line.split(separator: " ").first else { return false }
            return !["pending", "decline", "fetch"].contains(word)
        }
        var description: String {
            "“\(line)” is not an answer: write done, unhandled, failed TEXT, pending DURATION TEXT, decline "
                + AppAnswer.Declined.allCases.map(\.rawValue).joined(separator: "|") + ", or fetch "
                + AppAnswer.Fetched.allCases.map(\.rawValue).joined(separator: "|")
        }
    }

    init(_ line: String) throws(NotUnderstood) {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = words.count > 1 ? words[1] : ""
        switch words.first {
        case "done" where rest.isEmpty: self = .done
        case "unhandled" where rest.isEmpty: self = .unhandled
        case "failed": self = .failed(rest.isEmpty ? "it failed" : rest)
        case "pending":
            let parts = rest.split(separator: " ", maxSplits: 1).map(String.init)
            guard let first = parts.first, let time = try? Quantity.duration(first) else {
                throw NotUnderstood(line: line)
            }
            self = .pending(
                milliseconds: time.microseconds / 1000,
                text: parts.count > 1 ? parts[1] : "it takes longer"
            )
        case "decline":
            guard let what = AppAnswer.Declined(rawValue: rest) else { throw NotUnderstood(line: line) }
            self = .decline(what)
        case "fetch":
            guard let what = AppAnswer.Fetched(rawValue: rest) else { throw NotUnderstood(line: line) }
            self = .fetch(what)
        default: throw NotUnderstood(line: line)
        }
    }
}

/// Reads lines from a non-blocking descriptor.
struct LineBuffer {
    private var rest: [UInt8] = []
    private(set) var isAtEnd = false

    /// Reads without blocking, and returns complete lines.
    mutating func read(_ descriptor: Int32) -> [String] {
        while !isAtEnd {
            guard let bytes = try? Descriptor.read(descriptor, maximum: 4096) else { break }
            if bytes.isEmpty { isAtEnd = true }
            rest += bytes
            // The line is too long for an answer, so discard it.
            if rest.count > 1 << 16 { rest = [] }
        }
        var lines: [String] = []
        while let end = rest.firstIndex(of: 0x0a) {
            lines.append(String(wire: rest[..<end]))
            rest.removeFirst(end + 1)
        }
        if isAtEnd, !rest.isEmpty {
            lines.append(String(wire: rest))
            rest = []
        }
        return lines
    }
}
