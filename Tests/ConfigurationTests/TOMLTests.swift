// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Configuration

@Suite("TOML 1.0")
struct TOMLTests {
    /// The conformance suite stands beside the repository where it is there at all.
    static let suite = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/toml-test/tests")

    @Test("says that a closing quote is missing, and where")
    func openText() {
        for text in ["exec = [\"sleep\", \"10\n", "a = 'x\r\nb = 1\n"] {
            guard
                case .failure(let error) = Result(catching: { () throws(DocumentError) in
                    try Document.parse(Array(text.utf8))
                })
            else {
                Issue.record("\(text) is accepted")
                continue
            }
            #expect(error.message.contains("has no closing quote") && error.position.line == 1, "\(error)")
        }
    }

    @Test("agrees with every TOML 1.0 file of toml-test")
    func agreesWithTheConformanceSuite() throws {
        guard let list = try? String(contentsOf: Self.suite.appending(path: "files-toml-1.0.0"), encoding: .utf8) else {
            print("skipped: toml-test is not at \(Self.suite.path): only the project's own cases are tried")
            return
        }
        let files = list.split(separator: "\n").map(String.init)
        #expect(files.filter { $0.hasSuffix(".toml") }.count > 600)
        for file in files where file.hasSuffix(".toml") {
            let bytes = try [UInt8](Data(contentsOf: Self.suite.appending(path: file)))
            let parsed = Result { () throws(DocumentError) in try Document.parse(bytes) }
            if file.hasPrefix("invalid/") {
                guard case .failure(let error) = parsed else {
                    Issue.record("\(file) is accepted")
                    continue
                }
                #expect(error.position.line > 0, "\(file): no line")
                #expect(!error.message.isEmpty, "\(file): no sentence")
            } else {
                guard case .success(let node) = parsed else {
                    Issue.record("\(file) is refused: \(parsed)")
                    continue
                }
                let json = Self.suite.appending(path: file.replacing(".toml", with: ".json"))
                let expected = try JSONSerialization.jsonObject(with: Data(contentsOf: json))
                #expect(matches(node, expected), "\(file) differs: \(node)")
            }
        }
    }

    @Test("a text without quotes is an error that says so")
    func unquoted() {
        let parsed = Result { () throws(DocumentError) in try Document.parse(Array("restart = always".utf8)) }
        guard case .failure(let error) = parsed else {
            Issue.record("it is accepted")
            return
        }
        #expect(error.message.hasSuffix("a text needs quotes, as in \"always\""), "\(error.message)")
    }

    @Test(
        "own cases that are valid",
        arguments: [
            ("a = 1", #"{"a": {"type": "integer", "value": "1"}}"#),
            ("a.b = 'x\\u'", #"{"a": {"b": {"type": "string", "value": "x\\u"}}}"#),
            ("a = \"\\u0000\"", #"{"a": {"type": "string", "value": "\u0000"}}"#),
            (
                "a = [1.5, nan, -inf]",
                #"{"a":[{"type":"float","value":"1.5"},{"type":"float","value":"nan"},{"type":"float","value":"-inf"}]}"#
            ),
            (
                "a = 1979-05-27 07:32:00.500-07:00",
                #"{"a": {"type": "datetime", "value": "1979-05-27T07:32:00.5-07:00"}}"#
            ),
            ("[[a]]\nb = true\n[[a]]", #"{"a": [{"b": {"type": "bool", "value": "true"}}, {}]}"#),
        ]
    )
    func ownValidCases(toml: String, json: String) throws {
        let node = try Document.parse([UInt8](toml.utf8))
        #expect(try matches(node, JSONSerialization.jsonObject(with: Data(json.utf8))))
    }

    @Test(
        "own cases that are invalid, with their line and column",
        arguments: [
            ("a = 1\na = 2\n", 2), ("a = \n", 1), ("x = 1\n\n[a\n", 3), ("a = 99999999999999999999", 1), ("= 1", 1),
            ("\u{1}", 1), ("a = [1,", 1), ("a = 1 b = 2", 1),
        ]
    )
    func ownInvalidCases(toml: String, line: Int) {
        #expect {
            try Document.parse([UInt8](toml.utf8))
        } throws: { error in
            guard let error = error as? DocumentError else { return false }
            return error.position.line == line && error.position.column > 0 && !error.message.isEmpty
        }
    }

    @Test("refuses what would nest too deep to be walked")
    func refusesDeepNesting() {
        let part = Array(repeating: "a", count: 200_000).joined(separator: ".")
        for text in [
            part + " = 1", "[\(part)]", "x = {\(part) = 1}", "x = \"\"\"\n'\"\"\"\n\(part) = 1",
            "x = '''\n\"'''\n[\(part)]", String(repeating: "a = [", count: 100_000), "x = \"\\\\\"\n\(part) = 1",
        ] {
            #expect(throws: DocumentError.self) { try Document.parse([UInt8](text.utf8)) }
        }
        let nested = (0..<30).map { _ in Array(repeating: "a", count: 60).joined(separator: ".") + " = [{" }.joined()
        let deep = nested + String(repeating: "}]", count: 30)
        #expect(throws: Never.self) { try Document.parse([UInt8](deep.utf8)) }
        let dots = "x = \"" + String(repeating: ".", count: 10_000) + "\" # " + String(repeating: ".", count: 10_000)
        #expect(throws: Never.self) { try Document.parse([UInt8](dots.utf8)) }
    }

    @Test("keeps the order of keys and knows where they stand")
    func keepsOrderAndPositions() throws {
        let root = try Document.parse([UInt8]("z = 1\ny = 'ä' \n[b]\n  c = 2\n[a.d]\n".utf8))
        guard case .table(let members) = root.value else {
            Issue.record("no table")
            return
        }
        #expect(members.map(\.key) == ["z", "y", "b", "a"])
        #expect(members.map(\.position.line) == [1, 2, 3, 5])
        guard case .table(let inner) = members[2].node.value else {
            Issue.record("no table")
            return
        }
        #expect(inner[0].position == SourcePosition(line: 4, column: 3))
        #expect(inner[0].node.position == SourcePosition(line: 4, column: 7))
    }
}

/// Compares a document with toml-test's tagged JSON.
private func matches(_ node: Node, _ expected: Any) -> Bool {
    switch node.value {
    case .table(let members):
        guard let table = expected as? [String: Any], table.count == members.count else { return false }
        return members.allSatisfy { member in table[member.key].map { matches(member.node, $0) } ?? false }
    case .array(let elements):
        guard let array = expected as? [Any], array.count == elements.count else { return false }
        return zip(elements, array).allSatisfy { matches($0, $1) }
    case .string, .integer, .double, .boolean, .date:
        guard let tagged = expected as? [String: Any], let type = tagged["type"] as? String,
            let value = tagged["value"] as? String
        else { return false }
        return matches(node, type: type, value: value)
    }
}

private func matches(_ node: Node, type: String, value: String) -> Bool {
    switch (node.value, type) {
    case (.string(let text), "string"): Array(text.unicodeScalars) == Array(value.unicodeScalars)
    case (.integer(let number), "integer"): String(number) == value
    case (.double(let number), "float"):
        Double(value).map { $0 == number || ($0.isNaN && number.isNaN) } ?? false
    case (.boolean(let flag), "bool"): String(flag) == value
    case (.date(.date, let text), "date-local"): text == value
    case (.date(.time, let text), "time-local"): normalised(text) == normalised(value)
    case (.date(.dateTime, let text), "datetime"): normalised(text) == normalised(value)
    case (.date(.localDateTime, let text), "datetime-local"): normalised(text) == normalised(value)
    default: false
    }
}

/// One spelling for equal moments: upper case, `T` between, no zeros after the last digit of a fraction.
private func normalised(_ moment: String) -> String {
    let text = moment.uppercased().replacing(" ", with: "T").replacing("+00:00", with: "Z")
    guard let match = text.firstMatch(of: #/\.(\d+)/#) else { return text }
    var digits = String(match.1)
    while digits.hasSuffix("0") { digits.removeLast() }
    return text.replacingCharacters(in: match.range, with: digits.isEmpty ? "" : "." + digits)
}
