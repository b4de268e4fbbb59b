// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing

@Suite("The program torpor-gateway") struct ProgramTests {
    private func run(_ toml: String, _ words: [String] = []) throws -> (code: Int32, output: String) {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try File.write(folder + "/g.toml", toml)
        return try Spawn.run([Built.path("torpor-gateway"), "--config", folder + "/g.toml"] + words)
    }

    @Test("says everything that is wrong, and does not start")
    func wrong() throws {
        let invalid = try run("[gateway.http]\nlisten = 1.5\n[gateway]\nquue = 1\n")
        #expect(invalid.code == 2)
        let http = "[gateway.http]\nlisten = \"127.0.0.1:1\"\n[[gateway.http.tokens]]\nname = \"a\"\nsecret = \"a\"\n"
        let secret = try run(http)
        #expect(secret.code == 1 && secret.output.contains("the secret a cannot be read"), "\(secret.output)")
        #expect(try run(http, ["--check"]).code == 1)
        let missing = try Spawn.run([Built.path("torpor-gateway"), "--config", "/nowhere.toml"])
        #expect(missing.code == 2 && missing.output.contains("there is no such file"))
        #expect(try Spawn.run([Built.path("torpor-gateway"), "--what"]).code == 2)
        #expect(try Spawn.run([Built.path("torpor-gateway"), "--version"]).output.hasPrefix("torpor-gateway "))
    }

    @Test("has the libraries of its protocols to itself")
    func libraries() throws {
        guard File.exists("/usr/bin/ldd") else {
            print("skipped: there is no /usr/bin/ldd here")
            return
        }
        let libraries = ["libmicrohttpd", "libmosquitto", "libnats"]
        let own = try Spawn.run(["/usr/bin/ldd", Built.path("torpor-gateway")]).output
        for library in libraries { #expect(own.contains(library)) }
        for program in ["torpord", "torpor", "torpor-keeper", "torpor-policy-host"] {
            let other = try Spawn.run(["/usr/bin/ldd", Built.path(program)]).output
            for library in libraries { #expect(!other.contains(library), "\(program) loads \(library)") }
        }
    }
}
