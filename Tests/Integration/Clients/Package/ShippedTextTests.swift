// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Texts that are shipped twice") struct ShippedTextTests {
    @Test("the files with Varlink's interfaces are what torpord says of itself")
    func interfaces() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (code, output) = try Spawn.run(["/usr/bin/env", "python3", Sources.root + "/packaging/varlink", folder])
        #expect(code == 0, "\(output)")
        let texts = [AppInterface.name: AppInterface.description, ManagerInterface.name: ManagerInterface.description]
        for (name, text) in texts { #expect(try File.readString(folder + "/" + name + ".varlink") == text) }
        #expect(try File.list(folder).count == texts.count)
    }

    @Test("docs/apps.md has what Examples/node-notes is made of")
    func node() throws {
        let program = try File.readString(Sources.root + "/Examples/node-notes/notes.js")
        let parts = program.components(separatedBy: "// ----\n")
        try #require(parts.count == 3)
        #expect(try File.readString(Sources.root + "/docs/apps.md").contains("```js\n" + parts[1] + "```\n"))
    }
}
