// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import Testing
import Varlink

/// Recordings as they are written, line by line.
enum Traces {
    static let header =
        #"{"torpor_policy_trace":1,"torpor":"0.1.0","abi":1,"instance":1,"every_ms":1000,"policies":[]}"#

    /// The app that all of them have: active, in the first place.
    static let app =
        #"{"place":0,"name":"web","tags":["demo"],"flags":1,"state":2,"goal":2,"incarnation":1,"processes":1,"#
        + #""state_since":[null,null,1000000,null,null]}"#

    /// A round at a time in microseconds; the first one shows the app.
    static func round(_ at: Int64, event: String? = nil, apps: String? = nil, advice: String? = nil) -> String {
        var line = #"{"at":\#(at),"realtime":\#(1_700_000_000_000_000 + at)"#
        if let event { line += #","events":[{"kind":"\#(event)","at":\#(at)}]"# }
        if let apps = apps ?? (at == 0 ? app : nil) { line += #","apps":[\#(apps)]"# }
        if at == 0 { line += #","system":{"processors":4,"memory_total":8589934592,"battery":null}"# }
        if let advice { line += #","advice":[\#(advice)]"# }
        return line + "}"
    }

    /// A recording in a file of its own.
    static func write(_ lines: [String], end: String = "\n") throws -> String {
        let path = Libraries.folder + "/trace-\(UUID().uuidString.prefix(8)).jsonl"
        try File.write(path, lines.joined(separator: "\n") + end)
        return path
    }

    /// What ‘torpor policy simulate’ says of a recording.
    static func simulate(
        _ trace: String,
        _ policy: String,
        _ arguments: [String] = []
    ) throws -> (code: Int32, output: String) {
        let host = ["--host", Built.path("torpor-policy-host")]
        return try Spawn.run(
            [Built.path("torpor"), "policy", "simulate", "--trace", trace, "--policy", policy] + host + arguments
        )
    }
}
