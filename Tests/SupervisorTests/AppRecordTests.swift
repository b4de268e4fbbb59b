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

    @Test("The state whose profile was applied last is read from the record, and from what was added to it since")
    func profile() throws {
        let shell = try FakeShell(toml: "[apps.web]\nexec = [\"/bin/true\"]\n")
        let app = shell.app("web")
        func read(_ amendment: UInt8?) -> AppState? {
            let bytes = [UInt8](unsafeUninitializedCapacity: 2_048) { buffer, count in
                var writer = RecordWriter(UnsafeMutableRawBufferPointer(buffer))
                AppRecord(of: app).encode(into: &writer)
                count = writer.count
            }
            return bytes.withUnsafeBytes { memory in
                var reader = RecordReader(memory)
                var record = AppRecord(from: &reader)
                record.amend(amendment)
                return record.profileState
            }
        }
        #expect(read(nil) == nil)
        for state in AppState.allCases where state != .notRunning {
            let code = AppRecord.code(of: state)
            #expect(code > 0 && read(code) == state)
            app.run.profileState = state
            #expect(read(nil) == state)
            app.run.profileState = .background
            #expect(read(code) == state)
            // What a newer torpord may have added.
            #expect(read(200) == .background)
            app.run.profileState = nil
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
