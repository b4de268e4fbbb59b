// SPDX-License-Identifier: Apache-2.0

import Configuration
import Lifecycle
import Testing
import TorporAPI
import Varlink

@testable import DesktopEntries

@Suite("Desktop entries") struct DesktopEntryTests {
    private func text(_ app: DesktopApp, socket: String? = nil, types: [String] = []) -> [String] {
        var command = DesktopEntry.Command()
        command.socket = socket
        let entry = DesktopEntry(app, command, socket: socket ?? "/run/s", types: types)
        return entry.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("An app that opens URLs has all of this in its entry") func everything() {
        var app = DesktopApp(name: "notes")
        (app.title, app.titles) = ("Notes", ["de": "Notizen", "pt-br": "Caderno"])
        (app.summary, app.summaries) = ("Write; read", ["de": "Schreiben"])
        (app.icon, app.categories) = ("/opt/a b.svg", ["Audio", "X-Own"])
        (app.schemes, app.files) = (["notes", "x+y"], ["*.md"])
        #expect(
            text(app, types: ["text/markdown"]) == [
                "[Desktop Entry]", "Type=Application", "Version=1.1", "Name=Notes", "Name[de]=Notizen",
                "Name[pt_BR]=Caderno", "Comment=Write; read", "Comment[de]=Schreiben", "Icon=/opt/a b.svg",
                "Exec=torpor open --app notes %u", "Terminal=false", "StartupNotify=false",
                "Categories=AudioVideo;Audio;X-Own;",
                "MimeType=x-scheme-handler/notes;x-scheme-handler/x+y;text/markdown;", "Actions=suspend;quit;",
                "X-Torpor-App=notes", "X-Torpor-Socket=/run/s", "", "[Desktop Action suspend]", "Name=Suspend",
                "Exec=torpor suspend notes", "", "[Desktop Action quit]", "Name=Quit", "Exec=torpor stop notes", "",
            ]
        )
    }

    @Test("One that opens nothing comes to the foreground, and is called by its name without a title") func least() {
        let lines = text(DesktopApp(name: "web@1"))
        #expect(lines.contains("Name=web@1") && lines.contains("Exec=torpor foreground web@1"))
        #expect(!lines.contains { $0.hasPrefix("MimeType") || $0.hasPrefix("Comment") || $0.hasPrefix("Categories") })
    }

    @Test(
        "Arguments are in quotes where the specification wants it",
        arguments: [
            ("plain", "plain"), ("", "\"\""), ("a b", "\"a b\""), ("50%", "50%%"), ("a;b", "\"a;b\""),
            ("\\", "\"\\\\\""), ("$x`y\"", "\"\\$x\\`y\\\"\""), ("it's", "\"it's\""), ("ä", "ä"), ("a\nb", "\"a\nb\""),
        ]
    )
    func quoted(word: String, expected: String) { #expect(DesktopEntry.quoted(word) == expected) }

    @Test("A line stays one line, whatever is in a value") func lines() {
        var app = DesktopApp(name: "a")
        (app.title, app.summary) = (" two\nlines\t\\ %u;", "ä\r")
        let lines = text(app, socket: "/a b/%u;\n[Desktop Action x]\\s")
        #expect(lines.contains("Name=\\stwo\\nlines\\t\\\\ %u;") && lines.contains("Comment=ä\\r"))
        #expect(
            lines.contains("Exec=torpor foreground a --socket \"/a b/%%u;\\n[Desktop Action x]\\\\\\\\s\""),
            "\(lines)"
        )
        #expect(lines.filter { $0.hasPrefix("[") }.count == 3)
        let owner = DesktopEntry.owner(in: lines.joined(separator: "\n"))
        #expect(owner?.app == "a" && owner?.socket == "/a b/%u;\n[Desktop Action x]\\s")
    }

    @Test("Marks of an owner count only in the first group, and only together") func owners() {
        #expect(DesktopEntry.owner(in: "[Desktop Entry]\nX-Torpor-App=a\n") == nil)
        #expect(DesktopEntry.owner(in: "X-Torpor-App=a\nX-Torpor-Socket=/s\n") == nil)
        let other = "[Desktop Entry]\nName=x\n[Desktop Action y]\nX-Torpor-App=a\nX-Torpor-Socket=/s\n"
        #expect(DesktopEntry.owner(in: other) == nil && DesktopEntry.owner(in: "") == nil)
        #expect(DesktopEntry.owner(in: "# c\n[Desktop Entry]\nX-Torpor-Socket=/s\nX-Torpor-App=a")?.app == "a")
    }

    @Test(
        "A language is named as a locale is",
        arguments: [
            ("de", "de"), ("pt-br", "pt_BR"), ("es-419", "es_419"), ("sr-latn", "sr@latin"),
            ("sr-latn-rs", "sr_RS@latin"), ("zh-hans", "zh_CN"), ("zh-hant", "zh_TW"), ("zh-hant-hk", "zh_HK"),
            ("de-1996", nil), ("en-x-own", nil), ("mn-mong", nil), ("a-b-c-d", nil),
        ]
    )
    func locales(tag: String, expected: String?) { #expect(DesktopLocale.name(ofTag: tag) == expected) }

    @Test("A locale is named once, and languages that no locale is like are left out") func localesOnce() {
        var app = DesktopApp(name: "a")
        (app.title, app.titles) = ("A", ["zh-cn": "1", "zh-hans": "2", "de-1996": "3"])
        #expect(text(app).filter { $0.hasPrefix("Name[") } == ["Name[zh_CN]=1"])
    }

    @Test("A name is one that D-Bus takes, and that of no other app, whatever apps there are") func names() {
        let names = [
            "web": "io.torpor.web", "my-app_2": "io.torpor.my-app_2", "7zip": "io.torpor._x37zip",
            "web@1": "io.torpor.web_x401", "a.b": "io.torpor.a_x2Eb", "ä/": "io.torpor._xC3_xA4_x2F",
            // One that looks like a code.
            "web_x401": "io.torpor.web_x5Fx401", "app_x": "io.torpor.app_x", "app_x4": "io.torpor.app_x4",
            "app_x4g": "io.torpor.app_x4g", "app_xff": "io.torpor.app_xff",
        ]
        for (app, name) in names { #expect(DesktopEntryName.name(of: app) == name) }
        let apps = ["web@1", "web.1", "web_1", "web_1_2", "web_x401", "web_x5Fx401", "x"]
        #expect(Set(apps.map(DesktopEntryName.name(of:))).count == apps.count)
        let entries = { (apps: [String]) in
            DesktopEntries(of: apps.map { DesktopApp(name: $0) }, DesktopEntry.Command(), socket: "/s").entries
        }
        let all = entries(apps)
        for app in apps {
            let rest = entries(apps.filter { $0 != app })
            #expect(rest == all.filter { $0.app != app }, "the others keep their files when \(app) goes")
        }
    }

    @Test("What the configuration says comes through the control socket as it is") func json() throws {
        var specification = AppSpecification(name: "notes")
        (specification.presentation.title, specification.presentation.titles) = ("N", ["de": "M"])
        (specification.presentation.summary, specification.presentation.summaries) = ("S", ["de": "Z"])
        (specification.presentation.icon, specification.presentation.categories) = ("/i", ["Utility"])
        (specification.opening.schemes, specification.opening.files) = (["notes"], ["*.md"])
        let app = DesktopApp(specification)
        #expect(try DesktopApp(json: app.json) == app && app.isForPeople)
        #expect(app.schemes == ["notes"] && app.files == ["*.md"] && app.summaries == ["de": "Z"])
        specification.rules.isOneshot = true
        #expect(!DesktopApp(specification).isForPeople && !DesktopApp(name: "a").isForPeople)
    }
}
