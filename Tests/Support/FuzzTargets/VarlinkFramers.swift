// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A stream of messages, in pieces: the first byte says how long they may be, the second how many bytes come at a time.
enum VarlinkFramers: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard bytes.count > 2 else { return }
        let limit = 1 + Int(bytes[0]) * 64
        let stream = Array(bytes[2...])
        let parts = stream.split(separator: 0, omittingEmptySubsequences: false)
        let expected = Array(parts.dropLast().prefix { $0.count <= limit })
        let isTooLong = expected.count < parts.count - 1 || (parts.last?.count ?? 0) > limit
        // One byte at a time of a long stream would take as long as it is long.
        let piece = max(1 + Int(bytes[1]), stream.count / 1_024)
        let (found, failed) = read(stream, piece, limit)
        try expect(found == expected, "\(found.count) messages came of \(expected.count)")
        try expect(failed == isTooLong, failed ? "no message is too long" : "a message is too long")
        for message in found { try call(message) }
    }

    private static func read(_ stream: [UInt8], _ piece: Int, _ limit: Int) -> (found: [ArraySlice<UInt8>], Bool) {
        var framer = MessageFramer(limit: limit)
        var found: [ArraySlice<UInt8>] = []
        for start in stride(from: 0, to: stream.count, by: piece) {
            framer.append(stream[start..<min(start + piece, stream.count)])
            do throws(MessageFramer.TooLong) {
                while let message = try framer.next() { found.append(message) }
            } catch {
                return (found, true)
            }
        }
        return (found, false)
    }

    private static func call(_ message: ArraySlice<UInt8>) throws(Finding) {
        guard let json = try? JSON.parse(message) else { return }
        if let call = try? VarlinkCall(json: json) {
            let again = try? VarlinkCall(json: call.json)
            try expect(again == call, "a call is another one when it is written and read again")
            _ = (call.interface, call.member)
        }
        if let response = try? VarlinkResponse(json: json) {
            let again = try? VarlinkResponse(json: response.json)
            try expect(again == response, "a reply is another one when it is written and read again")
        }
    }
}
