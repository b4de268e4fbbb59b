// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Linux

@Suite("Patterns of files that a sandbox opens") struct SteadyPathTests {
    /// A folder with folders `a0` to `a9`, each with folders `b0` to `b9`, each with the file `c`.
    private static func with(_ body: (String) throws -> Void) throws {
        var template = Array((NSTemporaryDirectory() + "steady-XXXXXX").utf8CString)
        _ = try #require(mkdtemp(&template))
        let made = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: made) }
        for a in 0..<10 {
            for b in 0..<10 {
                let folder = "\(made)/a\(a)/b\(b)"
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                #expect(FileManager.default.createFile(atPath: folder + "/c", contents: nil))
            }
        }
        // A temporary folder may be reached by a link.
        try body(URL(filePath: made).resolvingSymlinksInPath().path)
    }

    private func find(_ pattern: String, _ budget: inout SteadyPath.Budget) throws -> SteadyPath.Matches {
        try SteadyPath.open(pattern, isPattern: true, &budget)
    }

    @Test("all matches are found, and what they cost is counted")
    func all() throws {
        try Self.with { folder in
            var budget = SteadyPath.Budget(folders: 100, names: 10_000)
            let matches = try find(folder + "/a*/b[0-9]/c", &budget)
            #expect(matches.files.count == 100 && matches.unsearched == nil)
            #expect(matches.files.first?.path == folder + "/a0/b0/c" && matches.files.allSatisfy { !$0.isFolder })
            // The folder itself, and the ten in it; in each ten names, and perhaps "." and "..".
            #expect(budget.folders == 89 && (9_868...9_890).contains(budget.names))
            let plain = try find(folder + "/a1/b1/c", &budget)
            #expect(plain.files.count == 1 && budget.folders == 89)
        }
    }

    @Test("a pattern for too many folders is searched as far as its budget goes, and the first that was not is named")
    func folders() throws {
        try Self.with { folder in
            var budget = SteadyPath.Budget(folders: 4, names: 10_000)
            let matches = try find(folder + "/a*/b*/c", &budget)
            #expect(matches.files.count == 30 && matches.unsearched == folder + "/a3" && budget.folders == 0)
            let rest = try find(folder + "/a9/*/c", &budget)
            #expect(rest.files.isEmpty && rest.unsearched == folder + "/a9")
        }
    }

    @Test("so is one for too many names, in the folder in which they end")
    func names() throws {
        try Self.with { folder in
            var budget = SteadyPath.Budget(folders: 100, names: 5)
            let matches = try find(folder + "/a*", &budget)
            #expect(matches.files.count <= 5 && matches.unsearched == folder && budget.names == 0)
        }
    }

    @Test("more matches than are allowed are an error")
    func tooMany() throws {
        try Self.with { folder in
            var budget = SteadyPath.Budget()
            #expect(throws: SteadyPath.Failure.tooMany(limit: 9)) {
                try SteadyPath.open(folder + "/a*", isPattern: true, atMost: 9, &budget)
            }
        }
    }
}
