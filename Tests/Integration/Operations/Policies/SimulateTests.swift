// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import Testing
import Varlink

@Suite("torpor policy simulate, with recordings written by hand") struct SimulateTests {
    private func simulate(
        _ lines: [String],
        does: String = "tick",
        end: String = "\n",
        _ arguments: [String] = []
    ) throws -> (code: Int32, output: String) {
        let trace = try Traces.write(lines, end: end)
        defer { try? File.remove(trace) }
        let policy = try Libraries.path("unreliable.c")
        let (code, output) = try Traces.simulate(trace, policy, ["--option", "does=\(does)"] + arguments)
        return (code, output.replacingOccurrences(of: trace, with: "TRACE"))
    }

    @Test("a policy is asked again by the virtual clock, between the lines too, and what it says is told")
    func virtualTime() throws {
        let lines = [Traces.header, Traces.round(0), Traces.round(900_000), Traces.round(6_000_000)]
        let (code, output) = try simulate(lines)
        #expect(code == 0)
        #expect(
            output == """
                TRACE: 2023-11-14T22:13:20.000Z, 6.0s, 0 events, 1 app, without policies
                unreliable 1.0: Does what a check has to find.

                2023-11-14T22:13:21.000Z new     web → suspended: tick 1
                2023-11-14T22:13:22.500Z new     web → background: tick 2
                2023-11-14T22:13:24.000Z new     web → suspended: tick 3
                2023-11-14T22:13:25.500Z new     web → background: tick 4

                5 questions: 0 the same, 4 new, 0 missing

                """
        )
    }

    @Test("decisions are compared with those of the recording")
    func comparison() throws {
        func advice(_ kind: String, _ value: Int, _ outcome: String, _ more: String = "") -> String {
            #"{"policy":"old","event":0,"kind":"\#(kind)","app":0,"value":\#(value),"reason":"then","outcome":"\#(outcome)"\#(more)}"#
        }
        let lines = [
            Traces.header, Traces.round(0),
            Traces.round(1_000_900, event: "state", advice: advice("goal", 4, "taken")),
            Traces.round(2_500_000, event: "state", advice: advice("goal", 2, "taken")),
            Traces.round(4_200_000, event: "state", advice: advice("goal", 4, "refused", #","why":"it sleeps""#)),
            Traces.round(5_600_000, event: "state", advice: advice("goal", 3, "told")),
        ]
        let (code, output) = try simulate(lines, ["--json"])
        #expect(code == 0)
        let document = try JSON.parse(output)
        let decisions = (document["decisions"]?.arrayValue ?? []).map { decision in
            ["difference", "text", "reason", "then", "note"].map { decision[$0]?.stringValue ?? "-" }
        }
        #expect(
            decisions == [
                ["same", "web → suspended", "tick 1", "old", "-"],
                ["new", "web → background", "tick 2", "-", "then old decided: web → active"],
                ["missing", "web → active", "then", "old", "-"],
                ["refused", "web → suspended", "tick 3", "old", "old advised it then and was refused: it sleeps"],
                ["new", "web → background", "tick 4", "old", "old only advised it then"],
            ]
        )
        #expect(document["summary"]?["missing"] == 1 && document["summary"]?["same"] == 1)
        #expect(document["decisions"]?.arrayValue?.first?["line"] == 2)
    }

    @Test("what a supervisor would not follow, and what is so already, is no decision")
    func rules() throws {
        let asleep = #"{"place":0,"state":4,"goal":4,"flags":65}"#
        let lines = [Traces.header, Traces.round(0), Traces.round(500_000, apps: asleep), Traces.round(3_000_000)]
        let (_, idle) = try simulate(lines)
        #expect(idle.contains("\n2023-11-14T22:13:22.500Z new     web → background: tick 2\n"), "\(idle)")
        #expect(!idle.contains("tick 1"))
        let required = #"{"place":0,"state":3,"goal":3,"flags":65}"#
        let (_, refused) = try simulate([
            Traces.header, Traces.round(0), Traces.round(500_000, apps: required), Traces.round(2_000_000),
        ])
        #expect(
            refused.contains(
                "Z refused web → suspended: tick 1 [it is required by an app that runs: it is not suspended]\n"
            ),
            "\(refused)"
        )
        #expect(refused.hasSuffix("0 the same, 0 new, 0 missing, 1 that would be refused\n"))
    }

    @Test("another torpord begins with a policy that has forgotten everything; an interruption is none")
    func interruption() throws {
        let again = Traces.header.replacingOccurrences(of: #""instance":1"#, with: #""instance":2"#)
        func lines(_ header: String) -> [String] {
            [
                Traces.header, Traces.round(0), Traces.round(1_200_000), header,
                Traces.round(1_300_000, apps: Traces.app), Traces.round(2_900_000),
            ]
        }
        let (_, restarted) = try simulate(lines(again))
        #expect(
            restarted.contains("Z new     web → suspended: tick 1\n2023-11-14T22:13:22.300Z new     "),
            "\(restarted)"
        )
        #expect(restarted.contains("web → suspended: tick 1\n\n4 questions"), "\(restarted)")
        let (_, resumed) = try simulate(lines(Traces.header))
        #expect(resumed.contains("2023-11-14T22:13:22.500Z new     web → background: tick 2\n"), "\(resumed)")
        #expect(resumed.contains(", interrupted 1 time\n"))
    }

    /// A recording, how it ends, and what is said of it.
    static let damages: [(lines: [String], end: String, sentence: String)] = [
        ([], "", "TRACE is empty: ‘torpor events --record FILE’ makes one"),
        (["hello"], "\n", "TRACE:1: this is not a recording of policies: "),
        ([#"{"at":1,"realtime":2}"#], "\n", "TRACE:1: this is not a recording of policies: "),
        ([Traces.header], "\n", "TRACE:1: the recording ends before anything was recorded"),
        (
            [Traces.header.replacingOccurrences(of: #"trace":1"#, with: #"trace":2"#)], "\n",
            "TRACE:1: torpor_policy_trace is 2, and this torpor reads 1: upgrade it"
        ),
        (
            [Traces.header, Traces.round(0), #"{"at":1,"realtime":2,"ev"#], "",
            "TRACE:3: the line is cut off: remove it "
        ),
        (
            [Traces.header, Traces.round(0), #"{"at":1,!}"#, Traces.round(5)], "\n",
            "TRACE:3: the line is damaged, not valid JSON at "
        ),
        ([Traces.header, Traces.round(0), #"{"at":1}"#], "\n", "TRACE:3: realtime is missing"),
        ([Traces.header, Traces.round(9), Traces.round(5)], "\n", "TRACE:3: the time goes back, from 9 to 5"),
        (
            [Traces.header, Traces.round(0), Traces.round(5, apps: #"{"place":7,"state":1}"#)], "\n",
            "TRACE:3: place 7 has values, but no app"
        ),
        (
            [Traces.header, Traces.round(0), Traces.round(5, apps: #"{"place":0,"state":-1}"#)], "\n",
            "TRACE:3: state of the app in place 0 cannot be -1"
        ),
        (
            [Traces.header, Traces.round(0), Traces.round(5, apps: #"{"place":0,"memory":"much"}"#)], "\n",
            "TRACE:3: memory of the app in place 0 cannot be \"much\""
        ),
        (
            [Traces.header, Traces.round(0), Traces.round(5, apps: #"{"place":4294967295,"name":"x"}"#)], "\n",
            "TRACE:3: there is no room for an app in place 4294967295"
        ),
    ]

    @Test("what is wrong with a recording is told with its line", arguments: damages)
    func damage(_ lines: [String], _ end: String, _ sentence: String) throws {
        let (code, output) = try simulate(lines, end: end)
        #expect(code == 1)
        #expect(output.hasPrefix("torpor: " + sentence), "\(output)")
    }

    @Test("fields that are not known are named, and the rest is simulated")
    func newer() throws {
        let app = #"{"place":0,"colour":3}"#
        let (code, output) = try simulate([Traces.header, Traces.round(0), Traces.round(1_500_000, apps: app)])
        #expect(code == 0)
        #expect(output.contains("torpor: TRACE has fields that this version does not know: colour\n"), "\(output)")
        #expect(output.contains("web → suspended: tick 1"))
    }

    @Test("a policy that dies of a recording is told with the line")
    func death() throws {
        let gone = #"{"place":0,"flags":0,"state":0,"goal":0}"#
        let lines = [Traces.header, Traces.round(0), Traces.round(5, event: "state", apps: gone)]
        let (code, output) = try simulate(lines, does: "fragile")
        #expect(code == 1)
        #expect(
            output == "torpor: TRACE:3: asked about state, the policy's process was ended by SIGSEGV\n",
            "\(output)"
        )
    }
}
