// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import Lifecycle
import Testing

@testable import Supervisor

@Suite("The supervisor's part of an app's record") struct AppRecordTests {
    /// Writes the record of an app, and reads it for another one.
    private func copy(_ app: AppRuntime, to other: AppRuntime) {
        let bytes = [UInt8](unsafeUninitializedCapacity: 2_048) { buffer, count in
            var writer = RecordWriter(UnsafeMutableRawBufferPointer(buffer))
            AppRecord(of: app).encode(into: &writer)
            count = writer.count
        }
        bytes.withUnsafeBytes { memory in
            var reader = RecordReader(memory)
            AppRecord(from: &reader).restore(other)
        }
    }

    @Test("The next torpord knows of a kill in the app's sleep, and how the app was last woken")
    func later() throws {
        let apps = ["asleep", "woken", "neither", "next"]
        let shell = try FakeShell(toml: apps.map { "[apps.\($0)]\nexec = [\"/bin/true\"]\n" }.joined())
        shell.app("asleep").wasKilledAsleep = true
        shell.app("woken").run.wasWokenUntraced = true
        let next = shell.app("next")
        for name in apps.dropLast() {
            next.run = Incarnation()
            next.wasKilledAsleep = nil
            copy(shell.app(name), to: next)
            #expect(next.wasKilledAsleep == (name == "asleep" ? true : nil))
            #expect(next.run.wasWokenUntraced == (name == "woken"))
        }
    }
}
