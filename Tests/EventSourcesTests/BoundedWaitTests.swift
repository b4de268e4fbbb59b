// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Testing

@testable import EventSources

@Suite("Waits with a bound") struct BoundedWaitTests {
    @Test("Each ends in its own time if nothing comes, and is kept no longer") func overdue() throws {
        let shell = try FakeShell("a")
        let wait = BoundedWait(shell.engine.loop)
        var told: [Int64] = []
        for seconds in [2, 1, 3] as [Int64] { wait.add(within: .seconds(seconds)) { told.append(seconds) } }
        for expected in [[], [1], [1, 2], [1, 2, 3]] as [[Int64]] {
            #expect(told == expected && wait.isEmpty == (expected.count == 3))
            try shell.pass(.seconds(1))
        }
    }

    @Test("What comes ends all of them, each once, and one that is added meanwhile waits for the next")
    func ended() throws {
        let shell = try FakeShell("a")
        let wait = BoundedWait(shell.engine.loop)
        var told: [String] = []
        wait.add(within: .seconds(1)) {
            told.append("first")
            wait.add(within: .seconds(5)) { told.append("later") }
        }
        wait.add(within: .seconds(2)) { told.append("second") }
        wait.end()
        #expect(told == ["first", "second"] && !wait.isEmpty)
        try shell.pass(.seconds(4))
        #expect(told == ["first", "second"])
        try shell.pass(.seconds(1))
        #expect(told == ["first", "second", "later"] && wait.isEmpty)
    }
}
