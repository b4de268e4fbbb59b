// SPDX-License-Identifier: Apache-2.0

import Configuration
import Store
import Testing
import Varlink

@testable import Supervisor

@Suite("What an app does not know yet of its settings") struct SettingValuesTests {
    private static let declared: [SettingDeclaration] = {
        var port = SettingDeclaration("port", .integer(min: 1, max: 65_535))
        port.defaultValue = "8000"
        var theme = SettingDeclaration("theme", .choice(["light", "dark"]))
        theme.defaultValue = "light"
        return [port, theme, SettingDeclaration("key", .secret(maxLength: nil, pattern: nil))]
    }()

    private func untold(_ values: SettingValues) -> [String] { values.untold(Self.declared).map(\.name) }

    private func set(_ values: inout SettingValues, _ name: String, _ value: String?, at: Int64 = 1) -> [StoredSetting]
    {
        values.set([(name, value)], of: "web", at: at)
    }

    @Test("what was changed is merged, and what is as before is left out") func merge() {
        var values = SettingValues()
        #expect(set(&values, "port", "8001").count == 1)
        #expect(set(&values, "theme", "dark").count == 1)
        #expect(set(&values, "port", "8002").count == 1)
        #expect(set(&values, "port", "8002").isEmpty, "it is so already")
        #expect(untold(values) == ["port", "theme"])
        let back = set(&values, "port", nil)
        #expect(back.map(\.isTold) == [true] && back.map(\.isNothing) == [true])
        #expect(untold(values) == ["theme"])
        #expect(values.told(["theme"]).map(\.value) == ["dark"])
        #expect(untold(values).isEmpty && values.rows.keys.sorted() == ["theme"])
    }

    @Test("a value is checked once, and again only if it or its declaration has changed") func checks() {
        var name = SettingDeclaration("name", .string(maxLength: nil, pattern: "[a-z]+"))
        var values = SettingValues()
        _ = set(&values, "name", "word")
        _ = set(&values, "port", "8001")
        let declared = Self.declared + [name]
        for _ in 0..<3 { #expect(values.untold(declared).map(\.name) == ["port", "name"]) }
        #expect(values.effective(name) == "word" && values.problem(name) == nil && values.checks.count == 2)
        _ = set(&values, "port", "8002")
        #expect(values.effective(name) == "word" && values.effective(declared[0]) == "8002")
        #expect(values.checks.count == 3)
        name.kind = .string(maxLength: nil, pattern: "[0-9]+")
        #expect(!values.isSet(name) && values.problem(name) != nil && values.effective(name) == nil)
        #expect(values.checks.count == 4)
    }

    @Test("another default is told where none is set, and only until it is as before") func otherDefault() {
        var new = Self.declared
        new[0].defaultValue = "9000"
        new[1].defaultValue = "dark"
        var values = SettingValues()
        _ = set(&values, "theme", "light")
        _ = values.told(["theme"])
        let rows = values.redeclare(from: Self.declared, to: new, of: "web", at: 5)
        #expect(rows.map(\.key.name) == ["port"] && rows.map(\.known) == ["8000"])
        #expect(values.untold(new).map(\.name) == ["port"])
        #expect(values.redeclare(from: new, to: new, of: "web", at: 6).isEmpty)
        // The app has never heard of 9000.
        #expect(values.redeclare(from: new, to: Self.declared, of: "web", at: 7).isEmpty && untold(values).isEmpty)
        _ = values.redeclare(from: Self.declared, to: new, of: "web", at: 8)
        #expect(values.told(["port"]).count == 1 && values.untold(new).isEmpty)
    }

    @Test("a value that is set to its default is nothing new to the app") func sameAsDefault() {
        var values = SettingValues()
        #expect(set(&values, "port", "8000").count == 1)
        #expect(untold(values).isEmpty && values.isSet(Self.declared[0]))
    }

    @Test("what changed after the app was told is still to be told") func later() {
        var values = SettingValues()
        _ = set(&values, "port", "8001", at: 10)
        _ = set(&values, "theme", "dark", at: 20)
        #expect(values.told(["port", "theme"], until: 15).map(\.key.name) == ["port"])
        #expect(untold(values) == ["theme"])
        _ = set(&values, "port", "8000", at: 30)
        #expect(untold(values) == ["port", "theme"], "it knows 8001")
    }

    @Test("a value that no longer fits is treated as unset, and is kept") func misfit() throws {
        var values = SettingValues()
        _ = set(&values, "port", "70000")
        _ = set(&values, "key", "a\u{1}b")
        #expect(values.effective(Self.declared[0]) == "8000" && !values.isSet(Self.declared[0]))
        #expect(values.problem(Self.declared[0])?.description.contains("out of range") == true)
        let problem = try #require(values.problem(Self.declared[2]))
        #expect(!problem.description.contains("a\u{1}b"), "a secret is not shown")
        #expect(values.rows["port"]?.value == "70000" && untold(values).isEmpty)
    }

    @Test("what cannot be stored is taken back, unless it was changed again") func restore() {
        var values = SettingValues()
        _ = set(&values, "port", "1")
        let before = values
        let rows = values.set([("port", "2"), ("theme", "dark")], of: "web", at: 2)
        _ = set(&values, "theme", "light", at: 3)
        let old = values.restore(before, rows, at: 4)
        #expect(old.map(\.key.name) == ["port"] && values.rows["port"]?.value == "1")
        #expect(values.rows["theme"]?.value == "light")
    }

    @Test("a shell reads what is written for it, whatever the value") func assignments() throws {
        var values = SettingValues()
        _ = set(&values, "key", "it's $HOME `x`\n")
        let text = String(decoding: SettingsFiles.assignments(Self.declared, values), as: UTF8.self)
        #expect(text == "port='8000'\ntheme='light'\nkey='it'\\''s $HOME `x`\n'\n")
        #expect(SettingsFiles.document(Self.declared, values)["port"] == .int(8000))
    }
}
