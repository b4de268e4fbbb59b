// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import ScriptedServer
import Testing
import TorporAPI
import Varlink

/// What `torpor upgrade` says, with a server that plays both torpords.
@Suite("torpor upgrade, told by a script") struct UpgradeVerbTests {
    private typealias Exchange = ScriptedServer.Exchange

    private static func info(_ instance: Int64, version: String = "0.1.0", failure: String? = nil) -> SupervisorInfo {
        SupervisorInfo(version: version, instance: instance, pid: Int32(instance), apps: 2, upgradeFailure: failure)
    }

    private static func apps(_ pids: Int32?...) -> JSON {
        Replies.list(
            pids.enumerated().map {
                AppSummary(name: "app\($0.offset)", state: "active", goal: "active", pid: $0.element, incarnation: 1)
            }
        )
    }

    /// The connection of the torpord that is asked, up to its answer.
    private static func before(_ talk: Exchange, _ answer: UpgradeReply?, apps: JSON = apps(7, 8)) throws {
        for expected in ["Describe", "List", "Upgrade"] {
            let call = try talk.hear()
            guard call.member == expected else { throw Trouble("asked \(call.member) instead of \(expected)") }
            switch expected {
            case "Describe": try talk.say(info(2).json)
            case "List": try talk.say(apps)
            default: if let answer { try talk.say(answer.json) }
            }
        }
    }

    private static func describe(_ talk: Exchange, _ info: SupervisorInfo, apps: JSON? = apps(7, 8)) throws {
        try talk.hear()
        try talk.say(info.json)
        guard let apps else { return }
        try talk.hear()
        try talk.say(apps)
    }

    private static let yes = UpgradeReply(ok: true, message: "on its way")

    private func run(_ script: [ScriptedServer.Part], _ words: String...) throws -> (code: Int32, output: String) {
        let server = try ScriptedServer(script)
        let result = try Spawn.run([Built.path("torpor"), "upgrade", "--socket", server.path] + words)
        #expect(server.finish() == [])
        return result
    }

    /// The sentence without how long it took.
    private func withoutTime(_ text: String) -> String {
        text.replacing(/in [0-9]+ ms/, with: "in N ms")
    }

    @Test("says which one runs now, and how many apps were not touched")
    func done() throws {
        let result = try run([
            .connection { try Self.before($0, Self.yes) },
            .connection { try Self.describe($0, Self.info(3, version: "0.2.0")) },
        ])
        #expect(result.code == 0)
        #expect(withoutTime(result.output) == "torpord 0.1.0 → 0.2.0 (instance 2 → 3) in N ms, 2 apps untouched\n")
    }

    @Test("does not take the old one for the new one when it answers once more")
    func oldAnswers() throws {
        let result = try run([
            .connection { try Self.before($0, Self.yes) },
            .connection { try Self.describe($0, Self.info(2), apps: nil) },
            .connection { try Self.describe($0, Self.info(3)) },
        ])
        #expect(result.code == 0 && result.output.contains("(instance 2 → 3)"))
    }

    @Test("names the apps that are not the same any more; those that did not run before do not count")
    func changed() throws {
        let result = try run([
            .connection { try Self.before($0, Self.yes, apps: Self.apps(7, 8, nil)) },
            .connection { try Self.describe($0, Self.info(3), apps: Self.apps(7, nil, 9)) },
        ])
        #expect(result.code == 0)
        #expect(
            withoutTime(result.output)
                == "torpord 0.1.0 → 0.1.0 (instance 2 → 3) in N ms, 1 app untouched, changed during the upgrade: app1\n"
        )
    }

    @Test("gives the daemon's sentence when it refuses, with exit status 1")
    func refused() throws {
        let answer = UpgradeReply(ok: false, message: "an upgrade is under way already: wait for its end")
        let result = try run([.connection { try Self.before($0, answer) }])
        #expect(result.code == 1)
        #expect(result.output == "torpor: an upgrade is under way already: wait for its end\n")
    }

    @Test("says so when the old one goes on, because the new one did not come up")
    func failed() throws {
        let result = try run([
            .connection { try Self.before($0, Self.yes) },
            .connection { try Self.describe($0, Self.info(4, failure: "torpord 0.2.0 ended with status 1")) },
        ])
        #expect(result.code == 1)
        #expect(result.output == "torpor: the old torpord keeps running: torpord 0.2.0 ended with status 1\n")
    }

    @Test("does not ask twice when the answer is lost, and tells of the one that came")
    func lost() throws {
        let result = try run([
            .connection { try Self.before($0, nil) },
            .connection { try Self.describe($0, Self.info(3)) },
        ])
        #expect(result.code == 0 && result.output.contains("(instance 2 → 3)"))
    }

    @Test("does not wait for ever for one that does not make way")
    func stays() throws {
        let result = try run(
            [
                .connection {
                    try Self.before($0, Self.yes)
                    try $0.waitForClient()
                }
            ],
            "--timeout",
            "10s"
        )
        #expect(result.code == 1)
        #expect(result.output.hasPrefix("torpor: torpord 0.1.0 was not replaced within 10"), "\(result.output)")
    }

    @Test("prints one JSON document")
    func json() throws {
        let result = try run(
            [
                .connection { try Self.before($0, Self.yes) },
                .connection { try Self.describe($0, Self.info(3, version: "0.2.0")) },
            ],
            "--json"
        )
        let json = try JSON.parse(Array(result.output.utf8)[...])
        #expect(try SupervisorInfo(json: json["to"] ?? .null) == Self.info(3, version: "0.2.0"))
        #expect(json["from"]?["instance"] == 2 && json["untouched"] == 2 && json["changed"] == [])
        #expect(json["took_ms"]?.intValue != nil)
    }
}
