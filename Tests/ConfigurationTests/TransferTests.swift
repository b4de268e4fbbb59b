// SPDX-License-Identifier: Apache-2.0

import Testing
import TransferProtocol

@testable import Configuration

@Suite("What an app may transfer") struct TransferTests {
    @Test(
        "A pattern is of scheme, host, port and path",
        arguments: [
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "https://A.EXAMPLE:443/x?y#z", true),
            ("https://a.example", "http://a.example/", false), ("https://a.example", "https://a.example:8443/", false),
            ("https://a.example", "https://b.a.example/", false),
            ("https://a.example", "https://a.example.evil/", false),
            ("https://*.a.example", "https://b.a.example/", true),
            ("https://*.a.example", "https://c.b.a.example/x", true),
            ("https://*.a.example", "https://a.example/", false), ("https://*.a.example", "https://ba.example/", false),
            ("https://*.a.example", "https://evil/x.a.example", false),
            ("https://*.a.example", "https://evil?.a.example/", false),
            ("https://*.a.example", "https://evil\\.a.example/", false),
            ("https://*.a.example", "https://u@b.a.example/", false),
            ("http://[::1]:80/pub/*", "http://[::1]/pub/x", true), ("http://[::1]/pub/*", "http://[::1]/x", false),
            ("http://h/pub/*", "http://h/pub/../x", false), ("http://h/pub/*", "http://h/pub/%2E%2e/x", false),
            ("http://h/pub/*", "http://h/pub/.%2e/x", false), ("http://h/pub/*", "http://h/pub/a..b?/../", true),
            ("http://h/*.zip", "http://h/a.zip", true), ("http://h/*.zip", "http://h/a.zip?x", false),
        ]
    )
    func patterns(pattern: String, url: String, matches: Bool) throws {
        var transfers = TransferSpecification()
        transfers.allow = [try #require(WebPattern(pattern))]
        #expect(transfers.allows(url) == matches)
    }

    @Test("Without patterns every URL of http and https is allowed, and no other") func anything() {
        #expect(TransferSpecification().allows("HTTP://h") && TransferSpecification().allows("https://[::1]:8/"))
        for url in ["ftp://h/", "h", "http:h", "http:///x", "https://h:0/", "https://h:99999/", "http://u:p@h/", ""] {
            #expect(!TransferSpecification().allows(url), "\(url)")
        }
    }

    @Test("A window of the day may end on the next") func windows() throws {
        let night = try #require(DailyWindow("23:00-05:30"))
        #expect(night.contains(minute: 23 * 60) && night.contains(minute: 0) && night.contains(minute: 329))
        #expect(!night.contains(minute: 330) && !night.contains(minute: 22 * 60 + 59))
        let day = try #require(DailyWindow("01:00-05:00"))
        #expect(day.contains(minute: 60) && !day.contains(minute: 300) && !day.contains(minute: 59))
        #expect(night.text == "23:00-05:30")
        for text in [
            "1:00-05:00", "01:00", "24:00-05:00", "01:60-02:00", "01:00-01:00", "01:00-02:00-03:00", "+1:00-02:00",
        ] {
            #expect(DailyWindow(text) == nil, "\(text)")
        }
    }

    @Test(
        "What cannot be is said, with what can",
        arguments: [
            ("allow = [\"ftp://h/\"]", "not a pattern of http or https URLs"),
            ("allow = [\"https://a.*.example\"]", "not a pattern of http or https URLs"),
            ("allow = [\"*\"]", "not a pattern of http or https URLs"), ("allow = \"https://h\"", "expected an array"),
            ("window = \"at night\"", "not a time window"), ("limit = 0", "out of range"),
            ("authorities = { \"https://h\" = \"ca.pem\" }", "not the name of a host"),
            ("authorities = { \"h:1\" = \"ca.pem\" }", "not the name of a host"),
            ("credentials = { h = { user = \"me\" } }", "secret is missing"),
            ("credentials = { h = { user = \"me\", secret = \"key\" } }", "the app does not have"),
            ("retries = 3", "there is no such key"),
        ]
    )
    func refused(line: String, words: String) {
        let messages = complaints(app: "transfers = { \(line) }\n")
        #expect(messages.contains { $0.contains(words) }, "\(messages)")
    }

    @Test(
        "A subscription has a name and a URL",
        arguments: [
            ("{ url = \"http://h/\" }", "name is missing"), ("{ name = \"a\" }", "url is missing"),
            ("{ name = \"a/b\", url = \"http://h/\" }", "a name has from 1"),
            ("{ name = \"a\", url = \"ftp://h/\" }", "not an http or https URL"),
            ("{ name = \"a\", url = \"http://me@h/\" }", "not an http or https URL"),
            ("{ name = \"a\", url = \"http://h/ b\" }", "not an http or https URL"),
            ("{ name = \"a\", url = \"http://h/\", every = \"1ms\" }", "at least"), ("7", "expected a table"),
            ("{ name = \"a\", url = \"http://h/\" }, { name = \"a\", url = \"http://i/\" }", "a"),
        ]
    )
    func subscriptions(entry: String, words: String) {
        let messages = complaints(app: "subscriptions = [\(entry)]\n")
        #expect(messages.contains { $0.contains(words) }, "\(messages)")
    }

    @Test("A host's credentials are a setting of type secret") func credentials() throws {
        let text = """
            [apps.web]
            exec = ["/bin/true"]
            settings = { key = { type = "secret" } }
            [apps.web.transfers]
            credentials = { "Files.example.org" = { user = "me", secret = "key" } }
            """
        let login = try load(text).get().apps[0].transfers.credentials["files.example.org"]
        #expect(login?.user == "me" && login?.secret == "key")
    }
}
