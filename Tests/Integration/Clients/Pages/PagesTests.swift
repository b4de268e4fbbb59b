// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing

@Suite("The pages of docs/ that can be followed", .serialized) struct PagesTests {
    private static let folder = Sources.root

    /// Found, and not listed: a new one is followed too.
    static let names: [String] = {
        // Those of the folder demonstrations take a machine for themselves: make test-demonstrations.
        let found = (try? FileManager.default.contentsOfDirectory(atPath: Self.folder + "/docs/howto")) ?? []
        return ["tutorial.md"] + found.filter { $0.hasSuffix(".md") }.sorted().map { "howto/" + $0 }
    }()

    private static func follow(_ page: String) throws -> (code: Int32, output: String) {
        try Spawn.run([folder + "/scripts/follow-page", "--programs", Built.folder, page], within: .seconds(300))
    }

    /// Whether this machine allows a home and a network of its own to a page.
    static let areFollowed: Bool = {
        guard let (code, output) = try? follow("/dev/null"), code != 3 else {
            print("the pages of docs/ are not followed: this machine allows no namespaces of users and networks")
            return false
        }
        return true
    }()

    @Test("Their commands do what stands there", .enabled(if: areFollowed), arguments: names)
    func followed(name: String) throws {
        let path = Self.folder + "/docs/" + name
        #expect(try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n$ ").count > 5)
        let (code, output) = try Self.follow(path)
        if code == 3 { return print("skipped: \(output)") }
        #expect(code == 0, "\(output)")
    }

    @Test("There is one of each kind") func count() { #expect(Self.names.count >= 5) }

    @Test("What fails, prints something else, or leaves a process is told", .enabled(if: areFollowed))
    func failing() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let text = """
            ```console
            $ false
            $ echo web: active 12
            web: active 4711
            $ echo web: failed
            web: active
            $ printf '%s\\n' first middle last
            first
            …
            $ printf '%s\\n' first last
            …
            middle
            $ sleep 1000 & disown
            ```
            <!-- fails -->
            ```console
            $ false
            ```
            """
        try File.write(folder + "/page.md", text)
        let nothing = try Self.follow(folder + "/none.md")
        #expect(nothing.code == 2 && nothing.output.contains("none.md is not there"), "\(nothing.output)")
        let (code, output) = try Self.follow(folder + "/page.md")
        #expect(code == 1)
        let problems = output.components(separatedBy: "\n\n").map { $0.split(separator: "\n").first ?? "" }
        #expect(
            problems == [
                "page.md:2: $ false", "page.md:5: $ echo web: failed",
                "page.md:10: $ printf '%s\\n' first last", "left running at its end: sleep 1000",
            ],
            "\(output)"
        )
    }

    @Test("The time zone can be another one for a page, and the machine's stays", .enabled(if: areFollowed))
    func timeZone() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let text = """
            ```console
            $ ln -sf /usr/share/zoneinfo/Asia/Tokyo /etc/localtime
            $ date +%Z; cat /etc/hostname >/dev/null
            JST
            ```
            """
        try File.write(folder + "/page.md", text)
        let before = try File.readLink("/etc/localtime")
        let (code, output) = try Self.follow(folder + "/page.md")
        #expect(code == 0, "\(output)")
        #expect(try File.readLink("/etc/localtime") == before)
    }
}
