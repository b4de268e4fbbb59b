// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI
import Varlink

@Suite struct PolicyTraceTests {
    private static let header = PolicyTraceHeader(
        torpor: "0.1.0",
        abi: 1,
        instance: 3,
        everyMilliseconds: 250,
        policies: [
            .init(name: "mobile", path: "/lib/m.so", mode: "decide", version: "1.0"),
            .init(name: "mine", path: "/lib/n.so", mode: "advise", version: nil),
        ]
    )

    private static let round = PolicyTraceRound(
        at: 5,
        realtime: 1_700_000_000_000_000,
        events: [
            .init(kind: "state", app: 0, from: 2, to: 3, at: 4), .init(kind: "pressure", from: 1, at: 5),
            .init(kind: "ended", app: 4_294_967_294, reason: 7, at: 5, delay: 100), .init(kind: "17", at: -1),
        ],
        apps: [
            .init(
                place: 0,
                name: "web",
                tags: ["a", ""],
                fields: ["state": 3, "last_use": nil, "state_since": [1, nil]]
            ),
            .init(place: 16_383, fields: ["flags": 0]),
        ],
        system: ["memory_total": 9_223_372_036_854_775_807, "battery": nil],
        advice: [
            .init(
                policy: "mobile",
                event: 0,
                kind: "goal",
                app: 0,
                value: 4,
                time: 0,
                reason: "“it” sleeps",
                outcome: "refused",
                why: "no"
            ),
            .init(policy: "mine", event: 3, kind: "99", app: nil, value: 0, time: -7, reason: "", outcome: "taken"),
        ]
    )

    @Test("lines survive the wire")
    func wire() throws {
        for line in [.header(Self.header), .round(Self.round), .round(PolicyTraceRound(at: 0, realtime: 0))]
            as [PolicyTraceLine]
        {
            #expect(try PolicyTraceLine(json: JSON.parse(line.json.serialised())) == line)
        }
    }

    @Test("what is empty is left out")
    func short() {
        #expect(PolicyTraceRound(at: 1, realtime: 2).json == ["at": 1, "realtime": 2])
        #expect(
            Self.round.json["events"]?.arrayValue?[1] == ["kind": "pressure", "from": 1, "at": 5]
        )
    }

    /// A line, and what is wrong with it.
    static let faults: [(line: String, problem: String)] = [
        (#"{"torpor_policy_trace":2}"#, "torpor_policy_trace is 2, and this torpor reads 1: upgrade it"),
        (#"{"torpor_policy_trace":0}"#, "torpor_policy_trace is 0, and this torpor reads 1: record again"),
        (#"{"torpor_policy_trace":1}"#, "torpor is missing"),
        (#"{"at":1}"#, "realtime is missing"),
        (#"{"at":"1","realtime":1}"#, "at must be an integer"),
        (#"{"at":1,"realtime":1,"events":[{"at":1}]}"#, "kind is missing"),
        (#"{"at":1,"realtime":1,"events":[{"kind":"state","app":-1,"at":1}]}"#, "app is out of range"),
        (#"{"at":1,"realtime":1,"apps":[{"place":4294967296}]}"#, "place is out of range"),
        (#"{"at":1,"realtime":1,"apps":[{"name":"x"}]}"#, "place is missing"),
        (#"{"at":1,"realtime":1,"system":[]}"#, "system must be an object"),
        (
            #"{"at":1,"realtime":1,"advice":[{"policy":"p","event":0,"kind":"goal","outcome":"taken"}]}"#,
            "event is 0, and the line has 0 events"
        ),
        ("[]", "must be an object"),
    ]

    @Test("what is no line of a recording is told why", arguments: faults)
    func wrong(_ line: String, _ problem: String) throws {
        let error = #expect(throws: FieldError.self) { try PolicyTraceLine(json: JSON.parse(line)) }
        #expect(error?.description == problem)
    }

    @Test("what a request for a recording cannot be is refused")
    func request() {
        for (name, value) in [("every_ms", 99), ("for_ms", -1)] as [(String, Int64)] {
            let call = VarlinkCall(
                method: "\(ManagerInterface.name).RecordPolicies",
                parameters: .object(JSONObject(members: [.init(name: name, value: .int(value))]))
            )
            #expect((#expect(throws: FieldError.self) { try ManagerRequest(call: call) })?.field == name)
        }
    }
}
