// SPDX-License-Identifier: Apache-2.0

import Foundation
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

@Suite("A library whose file is overwritten") struct OverwrittenTests {
    @Test("stays what it was in the process that has loaded it")
    func overwritten() throws {
        let path = try Libraries.makeFolder("detached") + "/libadvisor.so"
        let original = try Data(contentsOf: URL(fileURLWithPath: Libraries.path("advisor.c")))
        try original.write(to: URL(fileURLWithPath: path))
        // It asks to be asked again.
        let rule: [(String, Int64)] = [("on", 0), ("kind", 10), ("time", 5_000_000)]
        let options = rule.map { PolicyOption(key: "rules.0.\($0.0)", value: .integer($0.1)) }
        let policy = try PolicyLibrary(path: path, options: options)
        // As cp does, into the same file.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.write(contentsOf: Data(count: original.count))
        try file.close()
        let view = try Hosts.view()
        let answer = try [Hosts.event(TORPOR_EVENT_STARTED)].withUnsafeBufferPointer {
            events throws(PolicyFailure) in try policy.ask(events, of: view, limit: 16)
        }
        #expect(answer.advice.map(\.kind) == [TORPOR_ADVISE_ASK_AGAIN.rawValue])
    }
}
