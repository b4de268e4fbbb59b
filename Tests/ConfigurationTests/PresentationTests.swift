// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("What people see of an app") struct PresentationTests {
    private func read(_ keys: String) -> Result<TorporConfiguration, DiagnosticList> {
        load("[apps.web]\nexec = [\"/bin/a\"]\n\(keys)\n")
    }

    private func presentation(_ keys: String) throws -> AppPresentation {
        try read(keys).get().apps[0].presentation
    }

    @Test("A summary and an icon are one text, or a table") func values() throws {
        var found = try presentation("summary = \"Keeps notes\"\nicon = \"a.svg\"\n")
        #expect(found.summary == "Keeps notes" && found.summaries.isEmpty && found.icons.isEmpty)
        #expect(found.icon?.hasSuffix("/a.svg") == true)
        found = try presentation(
            "summary = { default = \"\(String(repeating: "ä", count: 200))\", de-AT = \"b\" }\n"
                + "icon = { default = \"/a.svg\", \"1024\" = \"/b.png\", dark = \"/c.svg\" }\n"
                + "categories = [\"Office\", \"X-Mine\", \"Office\"]"
        )
        #expect(found.summary?.count == 200 && found.summaries == ["de-at": "b"])
        #expect(found.icon == "/a.svg" && found.icons == ["1024": "/b.png", "dark": "/c.svg"])
        #expect(found.categories == ["Office", "X-Mine"])
    }

    @Test(
        "What cannot be is said, with what can",
        arguments: [
            ("summary = \"\(String(repeating: "a", count: 201))\"", "must not be longer than 200 characters"),
            ("summary = \"a\\nb\"", "must be one line"), ("summary = 4", "expected a string, or a table of strings"),
            ("icon = 4", "expected a path, or a table of paths with the key default, found an integer"),
            ("icon = { dark = \"a\" }", "needs the key default"),
            ("icon = { default = \"a\", \"8\" = \"b\" }", "must be \"default\", \"dark\", or a size in pixels from 16"),
            ("icon = { default = \"a\", \"064\" = \"b\" }", "must be \"default\", \"dark\", or a size"),
            ("icon = { default = 4 }", "expected a string, found an integer"),
            ("categories = [\"Ofice\"]", "did you mean \"Office\"?"),
            ("categories = [\"X-\"]", "is not a category"), ("categories = [\"X-a;b\"]", "is not a category"),
            ("categories = [\"TrayIcon\"]", "is not a category"),
            ("language = \"de-DE\"", "is not a locale as ‘locale -a’ lists them"),
            ("language = \"de_DE.UTF-8\\n\"", "is not a locale"), ("language = \"\"", "must not be empty"),
            ("language = \"{settings.language}\"", "there is no setting \"language\""),
        ]
    )
    func refused(keys: String, problem: String) {
        guard case .failure(let list) = read(keys) else { return #expect(Bool(false), "\(keys) is taken") }
        #expect(list.diagnostics.contains { $0.message.contains(problem) }, "\(list)")
    }

    @Test("Desktop entries follow the configuration of a user's supervisor alone") func desktopEntries() throws {
        let text = "[supervisor]\ndesktop_entries = true\n"
        #expect(try load(text, userID: 33).get().supervisor.desktopEntries)
        #expect(try !load("[supervisor]\ndesktop_entries = false\n").get().supervisor.desktopEntries)
        #expect(complaints(load(text)).first?.contains("torpor desktop sync --system") == true)
    }

    @Test(
        "A locale has a list of languages",
        arguments: [
            ("de_DE.UTF-8", "de_DE:de"), ("de", "de"), ("C.UTF-8", ""), ("POSIX", ""),
            ("ca_ES.UTF-8@valencia", "ca_ES@valencia:ca_ES:ca@valencia:ca"),
        ]
    )
    func languages(locale: String, list: String) {
        #expect(AppPresentation.variables(ofLanguage: locale) == ["LANG": locale, "LANGUAGE": list])
    }

    @Test("What is not a locale has none", arguments: ["", "DE", "de_de", "de_DE.UTF-8=x", "../x", "C:de"])
    func noLanguages(locale: String) { #expect(AppPresentation.variables(ofLanguage: locale) == nil) }
}
