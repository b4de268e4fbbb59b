// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// By the real ssh and sshd, with the command lines of the manual.
@Suite(
    "Apps and activities go to another machine by ssh",
    .enabled(if: TwoMachines.obstacle == nil, TwoMachines.obstacle ?? "")
)
struct SSHTests {
    /// What a shell on the way would change.
    private static let awkward = "it's $(id) `id` \"new\" \\ *"

    /// What another machine may lack.
    enum Lack: CaseIterable {
        case key, server, torpor, torpord

        func arrange(_ machines: TwoMachines) throws {
            switch self {
            case .key: try machines.acceptKey(false)
            case .server: machines.stopServer()
            case .torpor:
                machines.stopServer()
                // /usr/bin may have one of its own.
                try machines.startServer(path: machines.there.directory)
            case .torpord: try machines.there.stop()
            }
        }
    }

    private static func owners(_ machines: TwoMachines) throws -> [String?] {
        try [machines.here, machines.there].map { try $0.summary("web").owner }
    }

    @Test("what a user does in an app is continued there, where the app comes up as it was here")
    func activity() throws {
        let toml = """
            [apps.notes]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            ready = "delegate"
            restart = "never"
            activities = ["org.example.note"]

            """
        try TwoMachines.with(toml, files: Delegates.files(Delegates.restoring)) { machines in
            let (here, there) = (machines.here, machines.there)
            try here.done(.foreground, "notes")
            let title = JSON.string(Self.awkward)
            try here.ask(
                "d.call('SetActivity', type='org.example.note', title=\(title), payload={'line': 12})",
                app: "notes"
            )
            let state = Base64.encode(Array("milk and eggs".utf8))
            try here.ask("d.call('SaveState', data='\(state)')", app: "notes")
            let pid = try here.summary("notes").pid

            let pipe = "torpor activity export notes --with-state | ssh south torpor activity continue -"
            let moved = try machines.run(pipe)
            #expect(moved.code == 0, "\(moved)")
            let order = ["restoreState", "willContinueActivity", "continueActivity"]
            #expect(try there.messages("notes").filter { order.contains($0) } == order)
            #expect(there.records("notes").contains("restored milk and eggs"))
            let told = try there.waitForMessage("continueActivity", app: "notes").parameters
            #expect(told["title"] == title && told["payload"] == ["line": 12], "\(told)")
            #expect(try there.summary("notes").state == "active")

            // The state of an app that runs is not replaced.
            let again = try machines.run(pipe)
            #expect(again.code == 1 && again.output.contains("runs"), "\(again)")
            try there.done(.stop, "notes")
            try Lack.key.arrange(machines)
            let refused = try machines.run(pipe)
            #expect(refused.code == 255 && refused.output.contains("Permission denied"), "\(refused)")
            #expect(try there.summary("notes").state == "not-running")
            try machines.acceptKey(true)
            try Lack.torpord.arrange(machines)
            let down = try machines.run(pipe)
            #expect(down.code == 5 && down.output.contains("start torpord"), "\(down)")
            #expect(try here.summary("notes").pid == pid && here.summary("notes").state == "active")
        }
    }

    @Test("an app ends here and runs there, with its state and its mail")
    func moved() throws {
        try TwoMachines.with(MoveTests.toml, files: ["app.py": MoveTests.program]) { machines in
            let (here, there) = (machines.here, machines.there)
            let state = String(repeating: "state ", count: 100_000)
            try here.done(.own, "web")
            try here.plant(state)
            let payloads: [JSON] = [["text": .string(Self.awkward)], ["n": 2]]
            for payload in payloads { try here.post("news", payload) }
            let plan = try machines.run("torpor move web south --dry-run")
            #expect(plan.code == 0 && plan.output.hasPrefix("web: can move to south"), "\(plan)")
            #expect(try Self.owners(machines) == ["here", "none"])

            let moved = try machines.run("torpor move web south --for 1h")
            #expect(moved.code == 0 && moved.output.contains("web: is owned by south"), "\(moved)")
            #expect(moved.output.contains("and 2 messages"), "\(moved)")
            #expect(try Self.owners(machines) == ["none", "here"])
            #expect(try here.summary("web").state == "not-running" && there.summary("web").state == "active")
            #expect(here.processes(of: "web").isEmpty)
            #expect(there.records("web") == ["got " + state])
            #expect(try there.mailbox().mail.map(\.payload) == payloads)
            #expect(try here.mailbox().mail.isEmpty)
        }
    }

    @Test(
        "a machine that cannot be reached, refuses the key or has no torpor changes nothing",
        arguments: Lack.allCases
    )
    func refused(lack: Lack) throws {
        try TwoMachines.with(MoveTests.toml, files: ["app.py": MoveTests.program]) { machines in
            let here = machines.here
            try here.done(.own, "web")
            let pid = try here.summary("web").pid
            try lack.arrange(machines)
            let (code, output) = try machines.run("torpor move web south")
            let (status, words): (Int32, [String]) =
                switch lack {
                case .key: (5, ["Permission denied", "ssh does not reach south, or is refused there"])
                case .server: (5, ["Connection refused", "ssh does not reach south, or is refused there"])
                case .torpor: (1, ["there is no torpor in the PATH"])
                case .torpord: (1, ["no torpord answers there"])
                }
            for word in words + ["– web stays here"] { #expect(output.contains(word), "\(output)") }
            #expect(code == status, "\(output)")
            let summary = try here.summary("web")
            #expect(summary.pid == pid && summary.state == "active" && summary.owner == "here")
        }
    }

    @Test(
        "if the other machine is lost while the app is on its way, it is here again",
        arguments: [Lack.key, .torpord]
    )
    func lost(lack: Lack) throws {
        try TwoMachines.with(MoveTests.toml, files: ["app.py": MoveTests.program]) { machines in
            let here = machines.here
            try here.done(.own, "web")
            try here.plant("ours")
            let (script, waits, waiting) = (
                here.directory + "/ssh.sh", here.directory + "/waits", here.directory + "/waiting"
            )
            try File.write(
                script,
                """
                case "$*" in
                *"state import"*)
                    touch '\(waiting)'
                    while [ -e '\(waits)' ]; do sleep 0.01; done ;;
                esac
                exec ssh "$@"

                """
            )
            try File.write(waits, "")
            let (code, output) = try machines.run("torpor move web south --ssh 'sh \(script)'") {
                try here.eventually("its state is on its way") { File.exists(waiting) }
                #expect(try here.summary("web").state == "not-running")
                try lack.arrange(machines)
                try File.remove(waits)
            }
            #expect(code == 1 && output.contains("– web is owned here again"), "\(output)")
            let summary = try here.summary("web")
            #expect(summary.state == "active" && summary.owner == "here")
            #expect(here.records("web").last == "got ours")
            guard lack == .key else { return }
            #expect(try Self.owners(machines) == ["here", "none"])
        }
    }
}
