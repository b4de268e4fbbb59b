// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI
import Varlink

@testable import ControlService

@Suite("Lines of a single reply") struct GatheredLinesTests {
    private static func reply(_ lines: GatheredLines) throws -> (json: JSON, texts: [String], bytes: Int) {
        var writer = JSONWriter()
        lines.append(to: &writer, cursor: "1-2")
        let json = try writer.withBytes { try JSON.parse([UInt8]($0)) }
        let texts = (json["lines"]?.arrayValue ?? []).compactMap { $0["text"]?.stringValue }
        return (json, texts, writer.count)
    }

    @Test("are all there if they fit, as a log line is elsewhere")
    func all() throws {
        var lines = GatheredLines(most: 1_000)
        #expect(try Self.reply(lines).json == ["lines": [], "cursor": "1-2", "more": false, "truncated": false])
        let all = [LogLine(at: 1, text: "a \u{1}"), LogLine(text: "b")]
        lines.append([all[0]])
        lines.append([])
        lines.append([all[1]])
        let json = try Self.reply(lines).json
        #expect(json["lines"] == .array(all.map(\.json)))
        #expect(json["truncated"] == false)
    }

    @Test("are the newest that fit, however many bytes their characters take", arguments: [1, 3, 10, 1_000])
    func newest(page: Int) throws {
        let most = 100_000
        var lines = GatheredLines(most: most)
        let all = (0..<300).map { LogLine(at: Int64($0), text: "\($0) " + String(repeating: "\u{1}", count: 300)) }
        for start in stride(from: 0, to: all.count, by: page) {
            lines.append(Array(all[start..<min(all.count, start + page)]))
        }
        let (json, texts, bytes) = try Self.reply(lines)
        #expect(bytes < most + 100 && bytes > most - 2_500)
        #expect(texts == all.suffix(texts.count).map(\.text))
        #expect(json["truncated"] == true)
    }

    @Test("a page that does not fit at all is left out")
    func tooLong() throws {
        var lines = GatheredLines(most: 1_000)
        lines.append([LogLine(text: String(repeating: "a", count: 2_000))])
        #expect(try Self.reply(lines).json == ["lines": [], "cursor": "1-2", "more": false, "truncated": true])
        lines.append([LogLine(text: "b")])
        #expect(try Self.reply(lines).texts == ["b"])
    }
}
