// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing

@Suite("Moving pictures of what a terminal showed") struct RecordingTests {
    private static let scripts = Sources.root + "/scripts/"

    /// What a shell's command shows in a terminal of its own, drawn.
    private func picture(_ command: String) throws -> String {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let recorder = [Self.scripts + "record-terminal", "--size", "40x5", folder + "/cast", "/bin/sh", "-c", command]
        let (code, shown) = try Spawn.run(recorder)
        #expect(code == 7, "\(shown)")
        let (status, picture) = try Spawn.run(
            [Self.scripts + "draw-recording", "--title", "a <title>", folder + "/cast"]
        )
        #expect(status == 0, "\(picture)")
        // What is no XML is not shown at all.
        let check = "import sys, xml.dom.minidom; xml.dom.minidom.parseString(sys.argv[1])"
        let (isXML, said) = try Spawn.run(["/usr/bin/python3", "-c", check, picture])
        #expect(isXML == 0, "\(said)")
        #expect(picture.contains("<title>a &lt;title&gt;</title>") && !picture.contains("<script"))
        #expect(picture.contains("prefers-reduced-motion"))
        return picture
    }

    @Test("A command is typed, what it prints appears, and what has no room moves up") func session() throws {
        let picture = try picture(
            #"printf '\033[32m$\033[0m date & time\n'; for n in 1 2 3 4 5 6; do echo line $n; done; exit 7"#
        )
        #expect(picture.contains(">date<") && picture.contains(">&amp;<") && picture.contains("@keyframes t0{"))
        #expect((1...6).allSatisfy { picture.contains(">\($0)<") })
        // Seven lines in five rows: the picture rests two rows lower.
        #expect(picture.contains(".s{transform:translateY(-38px)"), "\(picture)")
    }

    @Test("Of screens that are drawn anew each piece is there as long as it was shown, the last ones in the end")
    func screens() throws {
        let picture = try picture(
            #"for n in 1 2 3; do printf '\033[Hstays\033[K\nround%d\033[K' $n; sleep 1.1; done; exit 7"#
        )
        func groups(_ text: String) -> [Substring] {
            picture.split(separator: "\n").filter { $0.hasPrefix("<g") && $0.contains(">\(text)<") }
        }
        #expect(groups("stays").count == 1 && groups("stays").allSatisfy { !$0.hasPrefix("<g class=\"a h ") })
        #expect(groups("round1").count == 1 && groups("round1").allSatisfy { $0.hasPrefix("<g class=\"a h ") })
        #expect(groups("round3").count == 1 && groups("round3").allSatisfy { !$0.hasPrefix("<g class=\"a h ") })
    }
}
