// SPDX-License-Identifier: Apache-2.0

import Mailbox
import Testing
import Varlink

@Suite("URLs that apps are to open") struct OpenedURLTests {
    @Test(
        "What a URL is",
        arguments: [
            "notes:today", "https://notes.example.org/a?b#c", "a+b.c-1:x", "MAILTO:a@b", "notes:ü",
            "n:" + String(repeating: "x", count: (8 << 10) - 2),
        ]
    )
    func taken(url: String) { #expect(OpenedURL.problem(url) == nil) }

    @Test(
        "What none is, or leads where no app should be led",
        arguments: [
            "", "notes", ":x", "1a:x", "a b:x", "notes:a b", "notes:a\nb", "notes:\u{7f}", "notes:\u{202e}x", "ü:x",
            "file:///etc/passwd", "FILE:x", "javascript:alert(1)", "data:,x", "torpor:stop",
            "n:" + String(repeating: "x", count: (8 << 10) - 1),
        ]
    )
    func refused(url: String) { #expect(OpenedURL.problem(url) != nil) }

    @Test("It is told with what every mail has, and by its own name") func parameters() throws {
        var box = Mailbox()
        _ = try box.add(OpenedURL.draft(.url("notes:1"), from: "root", key: "k"), id: 7, at: 7)
        // Each is told by itself.
        _ = try box.add(OpenedURL.draft(.url("notes:1"), from: "root", key: "k"), id: 8, at: 8)
        #expect(box.items.count == 2 && box.items[0].url == "notes:1")
        #expect(box.items[0].parameters["url"] == "notes:1" && box.items[0].parameters["id"] == .int(7))
        let other = MailDraft(topic: "news", message: "m", payload: ["url": "x:y"], sender: "x")
        _ = try box.add(other, id: 9, at: 9)
        #expect(box.items[2].url == nil && box.items[2].parameters["url"] == nil)
    }

    @Test("An app is told which app opened it, and what kind of file it is") func senders() throws {
        var box = Mailbox()
        _ = try box.add(OpenedURL.draft(.url("notes:1"), from: "web", source: "web", key: nil), id: 1, at: 1)
        _ = try box.add(OpenedURL.draft(.file("/a b.md", type: "text/markdown"), from: "root", key: nil), id: 2, at: 2)
        #expect(box.items[0].parameters["source"] == "web" && box.items[0].parameters["type"] == .null)
        #expect(box.items[1].parameters["url"] == "file:///a%20b.md")
        #expect(box.items[1].parameters["source"] == .null && box.items[1].parameters["type"] == "text/markdown")
        #expect(OpenedURL.target(of: box.items[1]) == .file("/a b.md", type: "text/markdown"))
        #expect(OpenedURL.target(of: box.items[0]) == .url("notes:1"))
    }

    @Test(
        "The host of a link",
        arguments: [
            ("https://notes.example.org/a", "notes.example.org"), ("HTTP://Notes.Example.ORG", "notes.example.org"),
            ("https://user:word@notes.example.org:8443?x", "notes.example.org"),
            ("https://a@b@notes.example.org#f", "notes.example.org"),
            ("https://notes.example.org./", "notes.example.org"),
            ("https://[::1]:80/", "[::1]"),
            // Where programs disagree, and where there is none.
            ("https://evil.example\\@notes.example.org/", nil), ("https:notes.example.org", nil), ("https:///a", nil),
            ("https://user@/a", nil), ("https://[::1/", nil), ("notes://notes.example.org/", nil), ("notes", nil),
        ] as [(String, String?)]
    )
    func hosts(url: String, host: String?) { #expect(OpenedURL.host(url) == host) }

    @Test(
        "The URL of a file, and back",
        arguments: [
            ("/a", "file:///a"), ("/a b/ü%.md", "file:///a%20b/%C3%BC%25.md"), ("/x?y#z", "file:///x%3Fy%23z"),
            ("/line\nbreak", "file:///line%0Abreak"),
        ]
    )
    func files(path: String, url: String) {
        #expect(OpenedURL.ofFile(path) == url)
        #expect(OpenedURL.path(url) == path)
        #expect(OpenTarget.file(path, type: nil).problem == nil)
    }

    @Test(
        "What is not the URL of a file",
        arguments: ["file:/a", "file://host/a", "notes:1", "file:///%4", "file:///%zz"]
    )
    func noFiles(url: String) { #expect(OpenedURL.path(url) == nil) }

    @Test("A relative path is none") func relative() { #expect(OpenTarget.file("a", type: nil).problem != nil) }
}
