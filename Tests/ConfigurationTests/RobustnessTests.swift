// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Configuration

@Suite("Nothing that is written brings the loader down")
struct RobustnessTests {
    /// xorshift64: the same mutations in every run.
    struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
    }

    @Test("2,000 mutations of the examples")
    func mutations() throws {
        var generator = Generator(state: 0x5eed)
        let examples = try SchemaTests.examples().sorted { $0.path < $1.path }.map { try [UInt8](Data(contentsOf: $0)) }
        let words = [
            "\"", "'''", "[", "]", "{", "}", "=", ".", "\n", "[[apps.web]]\n", "@", "%i", "-1", "99999999999999999999",
            "nan", "\\u0000", "1h", "\"none\"", "include = [\"*\"]\n", "instances = 1000\n", "é", "2026-01-01",
        ].map { Array($0.utf8) }
        var loaded = 0
        for _ in 0..<2_000 {
            var bytes = examples[Int.random(in: 0..<examples.count, using: &generator)]
            for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
                let at = Int.random(in: 0..<bytes.count, using: &generator)
                let end = min(bytes.count, at + Int.random(in: 0...12, using: &generator))
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: bytes[at] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes.removeSubrange(at..<end)
                case 2: bytes.insert(contentsOf: words.randomElement(using: &generator) ?? [], at: at)
                case 3:
                    bytes.insert(contentsOf: bytes[at..<end], at: Int.random(in: 0...bytes.count, using: &generator))
                default: bytes.replaceSubrange(at..<end, with: words.randomElement(using: &generator) ?? [])
                }
            }
            var system = machine([:])
            let text = bytes
            system.read = { $0 == "/etc/torpor/torpor.toml" ? .success(text) : .failure(.missing) }
            system.names = { _ in ["torpor.toml", "x"] }
            switch ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system) {
            case .success: loaded += 1
            case .failure(let list):
                #expect(!list.diagnostics.isEmpty)
                #expect(list.diagnostics.contains { $0.severity == .error })
            }
        }
        // Comments and the like are hit now and then, and most mutations break something.
        #expect(loaded > 20 && loaded < 1_900, "\(loaded)")
    }

    @Test("thousands of mistakes are bounded")
    func manyMistakes() {
        var text = "[apps.web]\n"
        for number in 0..<20_000 { text += "kei\(number) = 1\n" }
        #expect(complaints(load(text)).count == 1_000)
    }

    @Test("a thousand unknown names are not each compared with a thousand others")
    func manyUnknownNames() {
        var text = ""
        for number in 1000..<1900 {
            text += "[apps.work\(number)]\nexec = [\"/bin/w\"]\nrequires = [\"wrok\(number)\"]\n"
        }
        let found = complaints(load(text))
        #expect(found.count == 900)
        #expect(found.first?.hasSuffix("there is no app \"wrok1000\"; did you mean \"work1000\"?") == true)
        // Without a bound, each would have its hint, after 810,000 comparisons.
        let hints = found.count { $0.contains("did you mean") }
        #expect(hints > 20 && hints < 200, "\(hints)")
    }

    @Test("names of files are not listed for hints that are no longer given")
    func manyMissingFiles() {
        let sink = DiagnosticSink()
        let context = Context(sink: sink, file: "x", folder: "/")
        var listings = 0
        func names() -> [String] {
            listings += 1
            return (0..<10_000).map { "program\($0)" }
        }
        for _ in 0..<200 { _ = context.hint("porgram7", among: names(), within: 1) }
        #expect(listings > 1 && listings < 100, "\(listings)")
    }

    @Test("of a long list of unknown names, a few are reported, and the number of the others")
    func longList() {
        let names = (1...30).map { "\"db\($0)\"" }.joined(separator: ", ")
        let found = complaints(load("[apps.web]\nexec = [\"/bin/w\"]\nrequires = [\(names)]\n"))
        #expect(found.count == 9, "\(found)")
        #expect(found.contains { $0.contains("22 more names are not those of apps") }, "\(found)")
    }

    @Test("bytes that are not UTF-8 are an error with a place")
    func notUTF8() {
        var system = machine([:])
        system.read = { _ in .success([0x61, 0x20, 0x3d, 0x20, 0x22, 0xff, 0x22]) }
        let result = ConfigurationLoader.load(path: "x", environment: [:], system: system)
        #expect(complaints(result).count == 1)
        #expect(complaints(result)[0].hasPrefix("x:1:"))
    }
}
