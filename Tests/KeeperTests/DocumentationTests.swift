// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@Suite("docs/interfaces.md") struct DocumentationTests {
    private static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }

    @Test("says how torpord is started again, with the numbers that are in force")
    func restarts() throws {
        let source = try File.readString(Self.root + "/Sources/torpor-keeper/torpord.c")
        func number(_ name: String) throws -> Int {
            let rest = try #require(source.components(after: name + " = "))
            return try #require(Int(rest.prefix { $0.isNumber }))
        }
        let first = try number("DELAY_FIRST")
        let cap = try number("delay_cap") / 1000
        let stable = try number("STABLE_AFTER") / 1000
        let text = try File.readString(Self.root + "/docs/interfaces.md")
        #expect(
            text.contains(
                "at once, then after \(first) ms, doubling up to \(cap) s; after one that ran for \(stable) s it begins with "
                    + "at once again"
            )
        )
    }
}

extension String {
    /// What stands behind the first of these words.
    fileprivate func components(after words: String) -> Substring? {
        firstRange(of: words).map { self[$0.upperBound...] }
    }
}
