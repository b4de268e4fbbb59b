// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing

@Suite("What the programs are linked with") struct LinkageTests {
    @Test(
        "No program loads Foundation or ICU",
        arguments: ["torpord", "torpor", "torpor-verbs", "torpor-keeper"]
    )
    func noFoundation(program: String) throws {
        guard File.exists("/usr/bin/ldd") else {
            print("skipped: there is no /usr/bin/ldd here")
            return
        }
        let (_, output) = try Spawn.run(["/usr/bin/ldd", Built.path(program)])
        for name in [
            "libFoundation.so", "libFoundationEssentials", "libFoundationInternationalization", "_FoundationICU",
            "libicu",
        ] {
            // The argument parser brings FoundationEssentials with it; the daemon must do without.
            if program == "torpor-verbs", name == "libFoundationEssentials" { continue }
            #expect(!output.contains(name), "\(program) loads \(name)")
        }
        #expect(!output.isEmpty)
    }

    @Test("The everyday verbs load no library that only other verbs need")
    func noLibraries() throws {
        guard File.exists("/usr/bin/ldd") else {
            print("skipped: there is no /usr/bin/ldd here")
            return
        }
        let libraries = ["libsodium", "libyaml", "libncursesw", "libtinfo"]
        let (_, output) = try Spawn.run(["/usr/bin/ldd", Built.path("torpor")])
        #expect(!output.isEmpty && !libraries.contains { output.contains($0) }, "\(output)")
        let (_, others) = try Spawn.run(["/usr/bin/ldd", Built.path("torpor-verbs")])
        #expect(libraries.allSatisfy { others.contains($0) }, "\(others)")
    }
}
