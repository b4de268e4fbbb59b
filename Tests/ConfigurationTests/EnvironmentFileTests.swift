// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("Files of variables")
struct EnvironmentFileTests {
    @Test("quotes, comments, continuations and blanks")
    func parses() throws {
        let text = """
            # comment
            ; comment

            A=1
              B = two words\u{20}\u{20}
            export C='single # $x \\'
            D="a \\"b\\" \\$x \\n
            next"
            E=one\\
            two
            F=
            G="a"b'c'
            A=2\r

            """
        let variables = try EnvironmentFile.parse(Array(text.utf8), file: "e")
        #expect(variables.map(\.name) == ["A", "B", "C", "D", "E", "F", "G", "A"])
        #expect(
            variables.map(\.value) == [
                "1", "two words", "single # $x \\", "a \"b\" $x \\n\nnext", "onetwo", "", "abc", "2",
            ]
        )
    }

    @Test(
        "mistakes are said with their line",
        arguments: [
            ("A=1\nB", "e:2: expected NAME=VALUE"), ("A=\"x\ny", "e:1: the quote is not closed"),
            ("1A=1", "e:1: \"1A\" is not a variable name: use letters, digits and _"),
            ("=1", "e:1: \"\" is not a variable name: use letters, digits and _"),
            ("A=\0", "e:1: a value must not contain NUL"),
        ]
    )
    func mistakes(text: String, complaint: String) {
        #expect(throws: EnvironmentFileError(description: complaint)) {
            _ = try EnvironmentFile.parse(Array(text.utf8), file: "e")
        }
    }

    @Test("a later file wins, an optional one may be missing")
    func loads() throws {
        let system = machine(["/a": "X=1\nY=1", "/b": "X=2"])
        let files = ["/a", "/missing", "/b"].map { EnvironmentFileReference(path: $0, isOptional: true) }
        #expect(try EnvironmentFile.load(files, read: system.read) == ["X": "2", "Y": "1"])
        #expect(throws: EnvironmentFileError.self) {
            _ = try EnvironmentFile.load(
                [EnvironmentFileReference(path: "/missing", isOptional: false)],
                read: system.read
            )
        }
    }
}
