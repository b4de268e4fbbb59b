// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI

@Suite("What apps are called, and their pictures") struct PresentationTests {
    @Test("the title is that of the first language that there is one in")
    func languages() {
        var app = AppSummary(name: "notes", state: "active", goal: "active")
        #expect(app.title(in: ["de"]) == nil)
        app.title = "Notebook"
        #expect(app.title(in: ["de"]) == "Notebook" && app.title(in: []) == "Notebook")
        app.titles = ["de": "Notizbuch", "pt-br": "Caderno", "zh-hant": "筆記本"]
        #expect(app.title(in: ["de-AT"]) == "Notizbuch")
        #expect(app.title(in: ["fr", "PT-BR", "de"]) == "Caderno")
        #expect(app.title(in: ["zh-Hant-TW"]) == "筆記本")
        #expect(app.title(in: ["pt", "fr"]) == "Notebook")
        // Who wants English first is not given German because he knows that too.
        #expect(app.title(in: ["en-GB", "de"]) == "Notebook")
        app.titles["en"] = "Jotter"
        #expect(app.title(in: ["en-GB", "de"]) == "Jotter")
        #expect(app.summary(in: ["de"]) == nil)
        (app.summary, app.summaries) = ("Keeps notes", ["de": "Bewahrt Notizen"])
        #expect(app.summary(in: ["de-AT"]) == "Bewahrt Notizen" && app.summary(in: ["en", "de"]) == "Keeps notes")
    }

    @Test("an icon is what its content says that it is")
    func icons() throws {
        func type(_ text: String) -> String? { AppIcon(content: Array(text.utf8)).mediaType }
        #expect(type("<svg xmlns='http://www.w3.org/2000/svg'/>") == "image/svg+xml")
        #expect(type("\u{feff}<?xml version='1.0'?>\n<!-- a -->\n<svg/>") == "image/svg+xml")
        #expect(type("root:x:0:0 <svg") == nil && type("") == nil && type("<html></html>") == nil)
        let png = AppIcon(content: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0])
        #expect(png.mediaType == "image/png" && png.trouble == nil)
        let text = AppIcon(content: Array("root:x:0".utf8))
        #expect(text.data.isEmpty && text.trouble == "it is neither PNG, JPEG, GIF, WebP nor SVG")
        for icon in [png, text, AppIcon(trouble: nil)] { #expect(try AppIcon(json: icon.json) == icon) }
    }
}
