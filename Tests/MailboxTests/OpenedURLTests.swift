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
        _ = try box.add(OpenedURL.draft("notes:1", from: "root", key: "k"), id: 7, at: 7)
        // Each is told by itself.
        _ = try box.add(OpenedURL.draft("notes:1", from: "root", key: "k"), id: 8, at: 8)
        #expect(box.items.count == 2 && box.items[0].url == "notes:1")
        #expect(box.items[0].parameters["url"] == "notes:1" && box.items[0].parameters["id"] == .int(7))
        let other = MailDraft(topic: "news", message: "m", payload: ["url": "x:y"], sender: "x")
        _ = try box.add(other, id: 9, at: 9)
        #expect(box.items[2].url == nil && box.items[2].parameters["url"] == nil)
    }
}
