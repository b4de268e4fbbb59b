// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("Names that torpor-keeper could not take are refused, with the number of an instance")
struct NameLengthTests {
    private static func complaints(length: Int, _ keys: String = "") -> [String] {
        let name = String(repeating: "a", count: length)
        let file = "[apps.\(name)]\nexec = [\"a\"]\n\(keys)"
        return ConfigurationTests.complaints(load(file)).map { $0.replacing(name, with: "NAME") }
    }

    @Test("a name has at most 63 characters")
    func whole() {
        #expect(Self.complaints(length: 63) == [])
        #expect(Self.complaints(length: 64) == ["torpor.toml:1:7: apps.NAME: a name has from 1 to 63 characters"])
    }

    @Test("so has that of the last instance")
    func instances() {
        #expect(Self.complaints(length: 61, "instances = 9") == [])
        #expect(Self.complaints(length: 60, "instances = 10") == [])
        let expected = "torpor.toml:3:13: apps.NAME.instances: the name of the last instance, "
        for keys in ["instances = 10", "instances = 1\ninstance_first = 10"] {
            let complaints = Self.complaints(length: 61, keys)
            #expect(complaints.count == 1 && complaints[0].hasPrefix(expected), "\(complaints)")
            #expect(complaints[0].hasSuffix("has 64 characters, more than 63: shorten the app's name"), "\(complaints)")
        }
    }
}
