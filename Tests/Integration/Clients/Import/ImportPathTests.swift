// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("What torpor import writes fits the place where it is called") struct ImportPathTests {
    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = try File.realPath(Daemon.makeFolder())
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    private static let ecosystem = #"{"apps": [{"name": "web", "script": "web.sh"}]}"#

    @Test("a link to a release stays in the paths, however it is named; with .. it is resolved, and that is said")
    func release() throws {
        try withFolder { folder in
            let current = folder + "/current"
            try File.makeDirectories(folder + "/rel1")
            try FileManager.default.createSymbolicLink(atPath: current, withDestinationPath: "rel1")
            func imported(_ command: String, _ text: String = Self.ecosystem) throws -> String {
                try File.write(folder + "/rel1/ecosystem.json", text)
                let script = command.replacing("torpor", with: Built.path("torpor")).replacing("@D", with: folder)
                return try Spawn.run(["/bin/sh", "-c", script]).output
            }
            for command in [
                "cd @D/current && torpor import ecosystem.json", "cd @D/current && torpor import .",
                "torpor import @D/current/ecosystem.json", "cd @D && torpor import ./current/ecosystem.json",
            ] {
                let output = try imported(command)
                #expect(output.contains("\"\(current)/web.sh\"") && !output.contains("rel1"), "\(command): \(output)")
            }
            let up = Self.ecosystem.replacing("web.sh", with: "../web.sh")
            let output = try imported("torpor import @D/current/ecosystem.json", up)
            #expect(output.contains("\"\(folder)/web.sh\""), "\(output)")
            #expect(output.contains("is a link to \(folder)/rel1/ecosystem.json"), "\(output)")
        }
    }

    @Test("a script that is not there is a remark, and one that is there is not")
    func missing() throws {
        try withFolder { folder in
            try File.write(folder + "/ecosystem.json", Self.ecosystem)
            let words = [Built.path("torpor"), "import", folder + "/ecosystem.json"]
            let (code, output) = try Spawn.run(words)
            #expect(code == 0 && output.contains("web: there is no script \"web.sh\" in \(folder) now"), "\(output)")
            try File.write(folder + "/web.sh", "exec sleep 1000\n")
            #expect(try !Spawn.run(words).output.contains("there is no"))
        }
    }

    @Test("a link of another user is not written through, also if it leads nowhere", .enabled(if: Users.isRoot))
    func foreignLink() throws {
        try withFolder { folder in
            let (file, target, own) = (folder + "/ecosystem.json", folder + "/torpor.toml", folder + "/precious")
            try File.write(file, Self.ecosystem)
            try File.link(target, to: own)
            for owner in [UInt32(4321), 0] {
                #expect(lchown(target, owner, owner) == 0)
                for words in [["import", file, "--output", target, "--force"], ["init", "--yes", "--force", folder]] {
                    let (code, output) = try Spawn.run([Built.path("torpor")] + words)
                    #expect((code == 0) == (owner == 0), "\(output)")
                    #expect((owner == 0) != output.contains("is a link of another user"), "\(output)")
                    #expect(File.exists(own) == (owner == 0))
                }
            }
        }
    }

    @Test("the file is readable by no one who could not read the source", arguments: [0o600, 0o640, 0o644, 0o400])
    func mode(source: Int) throws {
        try withFolder { folder in
            let (file, target) = (folder + "/ecosystem.json", folder + "/torpor.toml")
            try File.write(file, Self.ecosystem)
            try File.setMode(file, UInt32(source))
            let wanted = UInt32(source) & 0o644 | 0o600
            for options in [[], ["--force"]] {
                let (code, output) = try Spawn.run(
                    [Built.path("torpor"), "import", file, "--output", target] + options
                )
                #expect(code == 0, "\(output)")
                #expect(try File.status(target).mode & 0o777 == wanted)
                try File.setMode(target, 0o644)
            }
        }
    }

    @Test("restart fails for an imported program that ends at once")
    func restart() throws {
        try withFolder { folder in
            let text = #"{"apps": [{"name": "web", "script": "web.sh", "cwd": "\#(folder)"}]}"#
            try File.write(folder + "/ecosystem.json", text)
            try File.write(folder + "/web.sh", "if [ -e bad ]; then exit 1; fi\nexec sleep 1000\n")
            let target = folder + "/torpor.toml"
            let words = ["import", folder + "/ecosystem.json", "--output", target]
            let (code, output) = try Spawn.run([Built.path("torpor")] + words)
            #expect(code == 0, "\(output)")
            try withDaemon(String(contentsOfFile: target, encoding: .utf8)) { daemon in
                try daemon.waitFor("web", "active")
                func restart() throws -> Int32 {
                    try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "restart", "web"]).code
                }
                #expect(try restart() == 0)
                try File.write(folder + "/bad", "")
                #expect(try restart() == 1)
                try FileManager.default.removeItem(atPath: folder + "/bad")
                try daemon.waitFor("web", "active")
            }
        }
    }
}
