// SPDX-License-Identifier: Apache-2.0

import Foundation
import KernelFiles
import Testing

@testable import Linux

@Suite("Streams of sound") struct SoundStreamTests {
    @Test("Streams that run, or play what is left, are found with their process; closed and paused ones are not")
    func found() throws {
        let kernel = try KernelFiles()
        #expect(SoundStream.running(root: kernel.root).isEmpty, "a machine without sound")
        let me = ThisProcess.pid
        func status(_ state: String) -> String {
            "state: \(state)\nowner_pid   : \(me)\ntrigger_time: 1.000000000\ntstamp      : 0.000000000\n"
        }
        let states = [
            ("card0/pcm0p/sub0", "RUNNING"), ("card0/pcm0c/sub0", "DRAINING"), ("card0/pcm1p/sub0", "PAUSED"),
            ("card1/pcm0p/sub0", "PREPARED"), ("card1/pcm0p/sub12", "RUNNING"),
        ]
        for (place, state) in states { try kernel.write("/proc/asound/\(place)/status", status(state)) }
        try kernel.write("/proc/asound/card1/pcm3p/sub0/status", "closed\n")
        try kernel.write("/proc/asound/cards", " 0 [Dummy]: Dummy - Dummy\n")
        try kernel.write("/proc/asound/card0/id", "Dummy\n")
        let streams = SoundStream.running(root: kernel.root)
        #expect(streams.map(\.place) == ["card0/pcm0c/sub0", "card0/pcm0p/sub0", "card1/pcm0p/sub12"])
        #expect(streams.allSatisfy { $0.owner == me })
        #expect(streams.map(\.isRecording) == [true, false, false])
    }

    @Test("A stream that another thread of a process opened is the process's")
    func thread() throws {
        let end = Monitor(false)
        try WorkerThread.start(named: "sound-player") { _ = end.wait { isOver, _ in isOver ? true : nil } }
        let me = ThisProcess.pid
        var found: Int32?
        let bound = Clock.monotonic() + .seconds(60)
        while found == nil, Clock.monotonic() < bound {
            found = try ProcFS.tasks(me).first {
                (try? File.readString("/proc/\(me)/task/\($0)/comm")) == "sound-player\n"
            }
        }
        let thread = try #require(found)
        #expect(thread != me)
        #expect(SoundStream.owner("state: RUNNING\nowner_pid   : \(thread)\n") == me)
        end.withLock { $0 = true }
        end.wake()
    }
}
