// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Testing

/// Every manual page as man(1) shows it.
@Suite("The examples of the manual pages") struct ManualExampleTests {
    private static let man = "/usr/bin/man"

    private struct Page {
        var file: String
        var source: String
    }

    /// The pages that the generator lists, each with the document that it is made of.
    private static func pages() throws -> [Page] {
        let generator = try String(contentsOfFile: Sources.root + "/packaging/man/generate", encoding: .utf8)
        return generator.matches(of: /\n    \("([^"]+)", "(\d)", "[^"]*", "([^"]+)"\)/).map {
            Page(file: "\($0.1).\($0.2)", source: String($0.3))
        }
    }

    /// The lines of all examples of a document: those in fences, also in lists, and those that are indented by four.
    static func examples(_ text: String) -> [String] {
        var lines: [String] = []
        var (isFenced, isIndented, isAfterBlank) = (false, false, true)
        for line in text.components(separatedBy: "\n") {
            let words = line.drop { $0 == " " }
            let isBlank = words.isEmpty
            if words.hasPrefix("```") {
                isFenced.toggle()
            } else if isFenced {
                if !isBlank { lines.append(line) }
            } else if !isBlank {
                isIndented = line.hasPrefix("    ") && (isAfterBlank || isIndented)
                if isIndented { lines.append(line) }
            }
            isAfterBlank = isBlank
        }
        return lines
    }

    private static func plain(_ line: String) -> String {
        line.replacing("…", with: "...").split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    @Test(
        "stand there line by line, as they are written",
        .enabled(if: FileManager.default.isExecutableFile(atPath: man), "there is no man")
    )
    func lines() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let made = try Spawn.run(["/usr/bin/python3", Sources.root + "/packaging/man/generate", folder, "1.0"])
        try #require(made.code == 0, "\(made)")
        let pages = try Self.pages()
        #expect(pages.count > 10)
        var count = 0
        for page in pages {
            let shown = try Spawn.run(
                [Self.man, "-P", "cat", "-E", "UTF-8", "-l", "\(folder)/\(page.file)"],
                environment: ["MANWIDTH": "300", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-c", "MAN_KEEP_FORMATTING": ""]
            )
            try #require(shown.code == 0, "\(page.file): \(shown.output.prefix(200))")
            // Bold and slanted letters are printed twice, with a backspace between.
            let text = shown.output.replacing(/.\u{8}/, with: "")
            let there = Set(text.components(separatedBy: "\n").map(Self.plain))
            let source = try String(contentsOfFile: Sources.root + "/" + page.source, encoding: .utf8)
            for example in Self.examples(source) {
                count += 1
                #expect(there.contains(Self.plain(example)), "\(page.file): \(example)")
            }
        }
        #expect(count > 300)
    }
}
