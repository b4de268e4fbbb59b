// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Where `torpor top` is run: terminals of every sort, and none.
@Suite("torpor top on terminals of every sort") struct TopTerminalTests {
    @Test(
        "it starts on each",
        arguments: ["xterm", "xterm-256color", "screen", "tmux-256color", "linux", "vt100", "xterm-unheard-of"]
    )
    func terminals(name: String) throws {
        try TopTests.withScreen(variables: "TERM=\(name)") { _, screen in
            let sign = name == "linux" ? "A active" : "● active"
            try screen.waitFor(sign, of: "web")
            try screen.press("j", "j")
            try screen.press("q")
            try screen.waitFor("prompt:")
        }
    }

    @Test("a terminal that shows pictures is given what an app showed last, while its page is shown")
    func pictures() throws {
        let toml = Pictured.head + "snapshot = { file = \"@D/shot.png\" }\n"
        let variables = "TMUX= TERM=xterm-kitty"
        try TopTests.withScreen(columns: 140, rows: 40, variables: variables, toml: toml) { daemon, screen in
            try File.write(daemon.directory + "/shot.png", Pictured.png)
            try screen.waitFor("● active", of: "web")
            try daemon.done(.suspend, "web")
            try daemon.eventually("its snapshot is there") { try daemon.summary("web").pictureAt != nil }
            let path = daemon.directory + "/written"
            try screen.run(["pipe-pane", "cat >\(path)"])
            func written() -> String { (try? File.readString(path)) ?? "" }
            try screen.press("i")
            let picture = "c=28,r=14,C=1,q=2,m=0;\(Base64.encode(Pictured.png))\u{1b}\\"
            try daemon.eventually("it is drawn") { written().contains(picture) }
            #expect(!written().contains("a=d,d=I"))
            try screen.press("Escape")
            try daemon.eventually("it is gone") { written().contains("\u{1b}_Ga=d,d=I,") }
            try screen.press("q")
        }
    }

    @Test("NO_COLOR has no colours, and everything is there all the same")
    func noColour() throws {
        try TopTests.withScreen { _, screen in
            try screen.waitFor("● active", of: "web")
            #expect(try screen.colours().contains("\u{1b}[38;5;"))
        }
        try TopTests.withScreen(variables: "NO_COLOR=1") { _, screen in
            try screen.waitFor("● active", of: "web")
            // 39 and 49 are the terminal's own.
            #expect(try screen.colours().firstMatch(of: /\x1b\[[0-9;]*\b([349][0-7]|10[0-7]|[34]8;[0-9;]+)m/) == nil)
        }
    }

    @Test("in a locale that is not UTF-8, and with --ascii, there is ASCII only")
    func ascii() throws {
        for (options, variables) in [("", "LC_ALL=C"), ("--ascii", "")] {
            try TopTests.withScreen(options: options, variables: variables) { _, screen in
                try screen.waitFor("A active", of: "web")
                try screen.press("t")
                try screen.waitFor("#", of: "web")
                #expect(try screen.lines().joined().utf8.allSatisfy { $0 < 0x80 })
            }
        }
    }

    @Test("what an app writes neither moves the cursor nor its columns")
    func hostile() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "printf 'one \\\\033[2J\\\\033]0;owned\\\\007 two\\\\n日本 e\\\\314\\\\201nd\\\\n'; exec sleep 1000"]
            """
        try TopTests.withScreen(toml: toml) { _, screen in
            try screen.waitFor("● active", of: "web")
            try screen.press("l")
            try screen.waitFor("what it wrote") { lines in
                lines[0].contains("torpor top") && lines.contains { $0.contains("日本") }
                    && lines.contains { $0.contains("one \u{fffd}[2J\u{fffd}]0;owned\u{fffd} two") }
            }
        }
    }

    @Test("where there is no terminal it says what to use, with exit status 2; --once is for that")
    func noTerminal() throws {
        try withDaemon(TopTests.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let none = try Spawn.run([Built.path("torpor"), "top", "--socket", daemon.socket])
            #expect(none.code == 2)
            #expect(none.output.contains("use ‘torpor list’"))
            let once = try Spawn.run(
                [Built.path("torpor"), "top", "--once", "--socket", daemon.socket],
                environment: ["LC_ALL": "C.UTF-8", "COLUMNS": "100"]
            )
            #expect(once.code == 0)
            #expect(once.output.contains(" web          ● active"))
            #expect(!once.output.contains("\u{1b}"))
            #expect(once.output.split(separator: "\n").count == 7)
            #expect(once.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
        }
    }

    @Test("without a supervisor it is as with every verb: exit status 5, and a sentence")
    func noSupervisor() throws {
        let result = try Spawn.run([Built.path("torpor"), "top", "--once", "--socket", "/nowhere/io.torpor"])
        #expect(result.code == 5)
        #expect(result.output.contains("start torpord"))
    }

    @Test("--help lists the keys; a delay that makes no sense is refused")
    func usage() throws {
        let help = try Spawn.run([Built.path("torpor"), "top", "--help"])
        #expect(help.code == 0)
        #expect(help.output.contains("timeline"))
        #expect(help.output.contains("force quit"))
        #expect(try Spawn.run([Built.path("torpor"), "top", "--delay", "1ms"]).code == 2)
    }
}
