// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing
import WireText

@Suite("A Procfile becomes apps")
struct ProcfileTests {
    @Test(
        "a command is split in words, unless it needs a shell",
        arguments: [
            ("bundle exec puma -C config/puma.rb", ["bundle", "exec", "puma", "-C", "config/puma.rb"]),
            ("bin/rails s -b 'ssl://0.0.0.0:3001'", ["bin/rails", "s", "-b", "ssl://0.0.0.0:3001"]),
            ("unicorn -p $PORT -c x.rb", ["unicorn", "-p", "5000", "-c", "x.rb"]),
            ("serve --port ${PORT:-4000}", ["serve", "--port", "5000"]),
            (
                "java -Dport=$PORT $JAVA_OPTS -jar a.jar",
                ["/bin/sh", "-c", "exec java -Dport=$PORT $JAVA_OPTS -jar a.jar"]
            ),
            ("sleep 10 && kafka x", ["/bin/sh", "-c", "sleep 10 && kafka x"]),
            ("A=${A:-x} air --cmd \"go build\"", ["/bin/sh", "-c", "A=${A:-x} exec air --cmd \"go build\""]),
            ("unset PORT && run", ["/bin/sh", "-c", "unset PORT && run"]),
            ("while true; do x; done", ["/bin/sh", "-c", "while true; do x; done"]),
            ("cd x", ["/bin/sh", "-c", "cd x"]),
            ("x '$PORT'", ["x", "$PORT"]),
            ("run *.rb", ["/bin/sh", "-c", "exec run *.rb"]),
            ("run 'not closed", ["/bin/sh", "-c", "run 'not closed"]),
        ]
    )
    func commands(line: String, exec: [String]) throws {
        #expect(try Imported("Procfile", "web: \(line)\n")["web"].exec == exec)
    }

    @Test("a command shows a terminal no control or bidirectional characters, with or without quotes in it")
    func terminals() throws {
        for text in ["a\"b \u{9b}31m", "a \u{9d}0;x", "a\\\\ \u{202e}x", "a\"b \u{2028}x", "a\" \u{7f}"] {
            let found = try Imported("Procfile", "web: sh -c '\(text)'\n\(text)\n")
            let page = found.result.toml
            #expect(!page.unicodeScalars.contains { $0.steersTerminals && $0 != "\n" }, "\(page.debugDescription)")
            #expect(try found["web"].exec.joined().unicodeScalars.contains { $0.steersTerminals }, "\(page)")
        }
    }

    @Test("ports count from 5000 in hundreds, or from PORT of .env, which is read at each launch")
    func ports() throws {
        let plain = try Imported("Procfile", "web: a\n# no\n\nworker: b $PORT\n")
        #expect(try plain["web"].environment["PORT"] == "5000" && plain["worker"].exec == ["b", "5100"])
        #expect(try plain["web"].directory == "/srv/app")
        let other = try Imported("Procfile.dev", ["Procfile.dev": "web: a\nworker: b\n", ".env": "PORT=3000\nX=1\n"])
        #expect(try other["worker"].environment["PORT"] == "3100")
        #expect(try other["web"].environmentFiles.map(\.path) == ["/srv/app/.env"])
    }

    @Test("values before a command are its variables, and release is no service")
    func others() throws {
        let found = try Imported("Procfile", "web: PORT=3000 bin/rails server\nrelease: rake db:migrate\n")
        #expect(try found["web"].environment["PORT"] == "3000" && found["web"].exec == ["bin/rails", "server"])
        #expect(try found["release"].rules.isOneshot && found["release"].launch == .onDemand)
    }

    @Test("a line that is none is told, and a file without any is refused")
    func wrong() throws {
        let found = try Imported("Procfile", "web: a\n=== what\n")
        #expect(found.result.remarks.contains { $0.text.contains("Line 2") && $0.line == 2 })
        #expect(
            refusal("Procfile", "web bundle\n")
                == "/srv/app/Procfile names no program: line 1, \"web bundle\", has no colon after a name, "
                + "and is left out"
        )
        #expect(refusal("Procfile", "") != nil)
    }

    @Test(
        "what only looks like one is none",
        arguments: ["root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/sh\n", "passwd: files systemd\n", "a: b\n"]
    )
    func other(text: String) {
        #expect(refusal("passwd", text)?.contains("does not look like a configuration that can be imported") == true)
        #expect(refusal("passwd", text, kind: .procfile) == nil)
    }

    @Test("names are made valid, and each one's own")
    func names() throws {
        let found = try Imported(
            "pm2.json",
            #"[{"name":"My App","script":"a.js"},{"name":"My-App","script":"b.js"},{"name":"…","script":"c.js"}]"#
        )
        #expect(found.apps.keys.sorted() == ["My-App", "My-App-2", "app"])
        #expect(found.remarks("My App") == ["was called \"My App\""])
        let same = try Imported("Procfile", "a: x\na: x\na-2: x\na: x\n")
        #expect(same.apps.keys.sorted() == ["a", "a-2", "a-2-2", "a-3"])
    }
}
