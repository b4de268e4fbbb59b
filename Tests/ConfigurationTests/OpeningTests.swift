// SPDX-License-Identifier: Apache-2.0

import Mailbox
import Testing

@testable import Configuration

@Suite("What apps open") struct OpeningTests {
    private func opening(_ change: (inout OpeningSpecification) -> Void) -> OpeningSpecification {
        var opening = OpeningSpecification()
        change(&opening)
        return opening
    }

    @Test("A host fits better than a scheme") func urls() {
        let app = opening {
            $0.schemes = ["notes", "https"]
            $0.hosts = ["notes.example.org"]
        }
        #expect(app.fit(.url("NOTES:today")) == .scheme)
        #expect(app.fit(.url("https://notes.example.org:8443/x")) == .host)
        #expect(app.fit(.url("https://other.example.org/")) == .scheme)
        #expect(app.fit(.url("memo:x")) == nil && app.fit(.url("notes")) == nil)
        #expect(app.fit(.file("/notes:today", type: nil)) == nil)
        #expect(OpenFit.host > .scheme && OpenFit.scheme > .name && OpenFit.name > .type && OpenFit.type > .types)
    }

    @Test("A file is found by its name, its type, and patterns of types") func files() {
        let app = opening { $0.files = ["*.note", "text/markdown", "image/*"] }
        #expect(app.fit(.file("/a/b.note", type: nil)) == .name)
        #expect(app.fit(.file("/a/b.md", type: "Text/Markdown")) == .type)
        #expect(app.fit(.file("/a/b.png", type: "image/png")) == .types)
        #expect(app.fit(.file("/a.note/b", type: nil)) == nil)
        #expect(app.fit(.file("/a/b.md", type: "text/plain")) == nil)
        #expect(app.fit(.url("x:/b.note")) == nil)
    }

    @Test("A URL stands for %u and %f, and leaves no argument where there is none") func placeholders() {
        let command = ["edit", "--open", "%u", "a%u"]
        #expect(OpenPlaceholder.fill(command, "notes:1") == ["edit", "--open", "notes:1", "a%u"])
        #expect(OpenPlaceholder.fill(command, nil) == ["edit", "--open", "a%u"])
        #expect(OpenPlaceholder.fill(["edit", "%f"], "file:///a%20b") == ["edit", "/a b"])
        #expect(OpenPlaceholder.fill(["edit", "%f"], "notes:1") == ["edit", "notes:1"])
        #expect(!OpenPlaceholder.isIn(["date", "+%u"]))
    }

    @Test(
        "What cannot be is said, with what can",
        arguments: [
            ("url_schemes = [\"1a\"]", "not the name of a scheme"), ("url_schemes = [\"notes:\"]", "without a colon"),
            ("url_schemes = [\"file\"]", "in opens"), ("may_open = [\"javascript\"]", "no app can have"),
            ("url_hosts = [\"https://a.example\"]", "not the name of a host"),
            ("url_hosts = [\"a.example:80\"]", "not the name of a host"),
            ("url_hosts = [\"a b\"]", "not the name of a host"),
            ("activities = [\"a b\"]", "no type of an activity"), ("activities = [\"\"]", "must not be empty"),
            ("opens = [\"text/\"]", "neither a media type"), ("opens = [\"a/b/c\"]", "neither a media type"),
            ("open_command = [\"edit\"]", "no place for the URL"),
            ("open_command = [\"%u\"]", "must begin with a program"),
            ("open_command = [\"e\", \"%u\", \"%f\"]", "2 places"), ("url_schemes = \"notes\"", "expected an array"),
        ]
    )
    func refused(line: String, words: String) {
        let messages = complaints(app: line + "\n")
        #expect(messages.contains { $0.contains(words) }, "\(messages)")
    }

    @Test("exec has one place for a URL, and not that of the program") func exec() {
        #expect(complaints(load("[apps.web]\nexec = [\"/bin/true\", \"%u\"]\n")).isEmpty)
        #expect(complaints(load("[apps.web]\nexec = [\"%u\"]\n")).contains { $0.contains("must begin with a program") })
        #expect(complaints(load("[apps.web]\nexec = [\"a\", \"%u\", \"%u\"]\n")).contains { $0.contains("2 places") })
    }
}
