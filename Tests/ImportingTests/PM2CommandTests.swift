// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("What PM2 runs, Torpor runs: shell lines, interpreters, and programs on the PATH of a shell")
struct PM2CommandTests {
    private func imported(
        _ members: String,
        programs: [String] = [],
        variables: [String: String] = [:],
        files: [String: String] = [:]
    ) throws -> Imported {
        var all = files
        all["ecosystem.json"] = #"{"apps":[{"name":"a",\#(members)}]}"#
        var machine = tree(all, variables: variables)
        machine.program = { programs.contains($0) ? $0 : nil }
        return try Imported("ecosystem.json", in: machine)
    }

    @Test(
        "a script with blanks is a shell line",
        arguments: [
            ("node dist/main.js", ["node", "dist/main.js"], [:]),
            ("serve -s build -l tcp://0.0.0.0:3000", ["serve", "-s", "build", "-l", "tcp://0.0.0.0:3000"], [:]),
            ("./bin/x --port 80", ["/srv/app/bin/x", "--port", "80"], [:]),
            ("FOO=bar node x.js", ["node", "x.js"], ["FOO": "bar"]),
            ("tail -F /tmp/queue", ["tail", "-F", "/tmp/queue"], [:]),
            ("node a.js | tee log", ["/bin/sh", "-c", "node a.js | tee log"], [:]),
            ("node a.js $ARGS", ["/bin/sh", "-c", "exec node a.js $ARGS"], [:]),
        ]
    )
    func lines(script: String, exec: [String], variables: [String: String]) throws {
        let app = try imported(#""script":"\#(script)","env":{"FOO":"x"}"#)["a"]
        #expect(app.exec == exec && app.environment == ["FOO": "x"].merging(variables) { $1 })
    }

    @Test("bash runs a line that needs a shell, if there is one; a file with a blank in its name is a file")
    func bash() throws {
        let found = try imported(#""script":"cd x && node a.js""#, programs: ["/bin/bash"])
        #expect(try found["a"].exec == ["/bin/bash", "-c", "cd x && node a.js"])
        let file = try imported(#""script":"my app.js""#, files: ["my app.js": ""])
        #expect(try file["a"].exec == ["node", "/srv/app/my app.js"])
        let more = try imported(#""script":"node a.js","args":"-x","node_args":"--inspect","interpreter":"none""#)
        #expect(try more["a"].exec == ["node", "a.js"])
        #expect(more.remarks("a").contains { $0.hasPrefix("args and node_args are left out: PM2 has bash run") })
    }

    @Test("a shell line is in fork mode by default")
    func fork() throws {
        let app = try imported(#""script":"node a.js","instances":2,"env":{"PORT":3000}"#)["a@1"]
        #expect(app.sockets.isEmpty)
    }

    @Test(
        "Python writes its output at once, as under PM2",
        arguments: [
            (#""script":"a.py""#, "1"), (#""script":"a","interpreter":"/v/bin/python3""#, "1"),
            (#""script":"a.js""#, nil),
        ]
    )
    func python(members: String, value: String?) throws {
        #expect(try imported(members)["a"].environment["PYTHONUNBUFFERED"] == value)
    }

    private static let service = ConfigurationSystem.servicePath
    private static let nvm = "/home/me/.nvm/versions/node/v20.1.0/bin"

    @Test(
        "a program that torpord's PATH lacks gets the PATH of its folder",
        arguments: [
            (#""script":"a.js""#, [nvm + "/node"], nvm),
            (#""script":"a.js""#, [nvm + "/node", "/usr/bin/node"], nvm),
            (#""script":"npm","args":"start""#, [nvm + "/node", "/usr/bin/npm"], nvm),
            (#""script":"b.sh""#, [nvm + "/node", "/bin/bash"], nvm),
            (#""script":"node a.js | tee log""#, [nvm + "/node", "/usr/bin/tee"], nvm),
            (#""script":"c","interpreter":"none""#, [nvm + "/node"], nvm),
            (#""script":"a.py""#, ["/srv/app/venv/bin/python3", "/usr/bin/python3"], "/srv/app/venv/bin"),
            (#""script":"a.js""#, ["/usr/bin/node"], nil), (#""script":"a.js""#, [], nil),
            (#""script":"a.js","interpreter":"/opt/node""#, [nvm + "/node"], nil),
            (#""script":"a.js","env":{"PATH":"/x"}"#, [nvm + "/node"], "/x"),
        ]
    )
    func path(members: String, programs: [String], folder: String?) throws {
        let found = try imported(
            members,
            programs: programs,
            variables: ["PATH": "/srv/app/venv/bin:\(Self.nvm):/usr/bin:/bin"],
            files: ["b.sh": "#!/bin/bash\ncd /srv\nexec node server.js\n", "c": "#!/usr/bin/env node\n"]
        )
        let path = try found["a"].environment["PATH"]
        if folder == "/x" { return #expect(path == "/x") }
        #expect(path == folder.map { $0 + ":" + Self.service })
        let told = found.remarks("a").filter { $0.contains("on the PATH of the shell, but torpord as a service") }
        #expect(told.count == (folder == nil ? 0 : 1), "\(found.remarks("a"))")
    }

    @Test("node@VERSION is nvm's, if this machine has it")
    func version() throws {
        let keys = #""script":"a.js","interpreter":"node@20.1.0""#
        let found = try imported(keys, programs: [Self.nvm + "/node"], variables: ["HOME": "/home/me"])
        #expect(try found["a"].exec == [Self.nvm + "/node", "/srv/app/a.js"])
        #expect(found.remarks("a").contains("node@20.1.0 is \(Self.nvm)/node"))
        let none = try imported(keys, variables: ["NVM_DIR": "/nvm"])
        #expect(try none["a"].exec == ["node", "/srv/app/a.js"])
        let place = "/nvm/versions/node/v20.1.0/bin/node"
        #expect(none.remarks("a").contains { $0.hasPrefix("node@20.1.0: this machine has no \(place)") })
    }

    @Test(
        "in cluster mode the sockets are where the program listens, as far as its variables and options say",
        arguments: [
            (#""env":{"PORT":3000}"#, "3000", true),
            (#""env":{"PORT":3000,"HOST":"127.0.0.1"}"#, "127.0.0.1:3000", false),
            (#""env":{"PORT":3000,"HOST":"localhost"}"#, "127.0.0.1:3000", false),
            (#""env":{"PORT":3000,"HOSTNAME":"::1"}"#, "[::1]:3000", false),
            (#""env":{"PORT":3000,"HOSTNAME":"box.example.org"}"#, "3000", true),
            (#""env":{"PORT":3000,"HOST":"0.0.0.0"}"#, "3000", false),
            (#""env":{"PORT":3000,"HOST":"::"}"#, "3000", false),
            (#""env":{"PORT":3000,"HOST":"10.0.0.1","BIND":"127.0.0.1"}"#, "3000", true),
            (#""env":{"PORT":3000},"args":"--host=127.0.0.1""#, "127.0.0.1:3000", false),
            (#""env":{"PORT":3000},"args":["-H","127.0.0.1"]"#, "127.0.0.1:3000", false),
        ]
    )
    func hosts(members: String, stream: String, isTold: Bool) throws {
        let found = try imported(#""script":"a.js","instances":2,\#(members)"#)
        #expect(found.result.toml.contains(#"stream = "\#(stream)", name = "3000""#), "\(found.result.toml)")
        #expect(try found["a@1"].sockets.count == 1)
        let told = found.remarks("a").contains {
            $0.contains("listen on all addresses") && $0.contains("127.0.0.1:3000")
        }
        #expect(told == isTold, "\(found.remarks("a"))")
        let known = found.remarks("a").contains { $0.hasSuffix(", as its variables or arguments say") }
        #expect(known != isTold, "\(found.remarks("a"))")
    }

    @Test("an app is launching for min_uptime, so that ‘torpor restart’ fails if the app ends before")
    func launching() throws {
        func ready(_ keys: String) throws -> String? {
            let toml = try imported(#""script":"a.js"\#(keys)"#).result.toml
            return toml.split(separator: "\n").first { $0.hasPrefix("ready") }.map(String.init)
        }
        #expect(try ready("") == #"ready = { command = ["/bin/sleep", "1"], timeout = "11s" }"#)
        #expect(try ready(#","min_uptime":2500"#) == #"ready = { command = ["/bin/sleep", "2.5"], timeout = "13s" }"#)
        #expect(try ready(#","min_uptime":"1m""#) == #"ready = { command = ["/bin/sleep", "10"], timeout = "20s" }"#)
        #expect(try ready(#","autorestart":false"#) == nil && ready(#","restart_delay":60000"#) == nil)
        let waiting = try imported(#""script":"a.js","wait_ready":true,"listen_timeout":90000"#)
        #expect(try waiting["a"].rules.launchDeadline == .seconds(90))
        let short = try imported(#""script":"a.js","wait_ready":true,"listen_timeout":2000"#)
        #expect(try short["a"].rules.launchDeadline == .seconds(60), "PM2 would let it run")
        #expect(!waiting.remarks("a").contains { $0.hasPrefix("listen_timeout") })
        #expect(try imported(#""script":"a.js","wait_ready":true"#)["a"].rules.launchDeadline == .seconds(60))
        let alone = try imported(#""script":"a.js","listen_timeout":30000"#)
        #expect(try alone["a"].rules.launchDeadline == nil)
        #expect(alone.remarks("a").contains { $0.hasPrefix("listen_timeout is left out: launch_deadline") })
    }

    @Test("several keys that only PM2 uses are named in one sentence")
    func grammar() throws {
        let remarks = try imported(#""script":"a.js","append_env_to_name":true,"vizion":false"#).remarks("a")
        #expect(remarks.contains("append_env_to_name and vizion are left out: only PM2 itself uses such keys"))
    }
}
