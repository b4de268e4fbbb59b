// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("Services that are announced") struct AnnouncementTests {
    private func load(_ entry: String) -> Result<TorporConfiguration, DiagnosticList> {
        ConfigurationTests.load([
            "torpor.toml": """
            [apps.web]
            exec = ["/a"]
            sockets = [{ name = "http", stream = "8000" }, { name = "local", stream = "/run/web.sock" }]
            announce = [\(entry)]
            """
        ])
    }

    @Test(
        "are read with their ports",
        arguments: [
            (#"{ type = "_http._tcp", socket = "http" }"#, 8000), (#"{ type = "_a-1._udp", port = 9 }"#, 9),
            (#"{ type = "_http._tcp", socket = "http", txt = { path = "/", a = "" }, while = "always" }"#, 8000),
        ] as [(String, UInt16)]
    )
    func reads(entry: String, port: UInt16) throws {
        let app = try #require(try load(entry).get().apps.first)
        #expect(app.announcements.first?.port(of: app) == port)
        if entry.contains("always") { #expect(app.announcements[0].text == ["a=", "path=/"]) }
    }

    @Test(
        "are refused with a sentence that says what to write",
        arguments: [
            (#"{ socket = "http" }"#, "type is missing"), (#"{ type = "http", port = 1 }"#, "no type of a service"),
            (#"{ type = "_http._sctp", port = 1 }"#, "no type"), (#"{ type = "_._tcp", port = 1 }"#, "no type"),
            (#"{ type = "_abcdefghijklmnop._tcp", port = 1 }"#, "no type"),
            (#"{ type = "_http._tcp" }"#, "either socket"),
            (#"{ type = "_http._tcp", port = 1, socket = "http" }"#, "either"),
            (#"{ type = "_http._tcp", socket = "htp" }"#, "none of the app's sockets"),
            (#"{ type = "_http._tcp", socket = "local" }"#, "none of the app's sockets with a port"),
            (#"{ type = "_http._tcp", port = 0 }"#, "port"),
            (#"{ type = "_http._tcp", port = 1, name = "" }"#, "must not be empty"),
            (##"{ type = "_http._tcp", port = 1, name = "a\u0001" }"##, "without control characters"),
            (#"{ type = "_http._tcp", port = 1, txt = { "a=b" = "c" } }"#, "an ASCII key without ="),
            (#"{ type = "_http._tcp", port = 1, txt = { a = 1 } }"#, "string"),
            (#"{ type = "_http._tcp", port = 1, while = "ever" }"#, "always"),
        ]
    )
    func refuses(entry: String, sentence: String) {
        guard case .failure(let list) = load(entry) else {
            Issue.record("\(entry) is taken")
            return
        }
        #expect(list.diagnostics.contains { $0.description.contains(sentence) }, "\(list.diagnostics)")
    }

    @Test("are bounded: so many services, and so much text") func bounds() {
        func fails(_ entry: String) -> Bool { if case .failure = load(entry) { true } else { false } }
        let one = #"{ type = "_http._tcp", port = 1 }"#
        #expect(!fails(Array(repeating: one, count: 16).joined(separator: ",")))
        #expect(fails(Array(repeating: one, count: 17).joined(separator: ",")))
        func text(_ count: Int, _ length: Int) -> String {
            let pairs = (0..<count).map { "k\($0) = \"\(String(repeating: "x", count: length))\"" }
            return "{ type = \"_http._tcp\", port = 1, txt = { \(pairs.joined(separator: ", ")) } }"
        }
        #expect(!fails(text(5, 250)) && fails(text(1, 260)) && fails(text(6, 250)))
    }
}
