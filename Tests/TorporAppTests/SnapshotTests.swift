// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Foundation
import Testing
import TorporAPI
import Varlink

@testable import TorporApp

@Suite("Snapshots that an app gives") struct GivenSnapshotTests {
    @Test("bytes go as they are, many of them through a file, and all of it can be taken back")
    func saving() async throws {
        let supervisor = try FakeSupervisor()
        defer { supervisor.remove() }
        let environment = AppEnvironment { supervisor.environment[$0] }
        let app = try TorporApp(environment: environment, isDelegate: false, takesSignals: false)
        defer { app.finish() }
        try await app.saveSnapshot([1, 2, 3])
        try await app.saveSnapshot([UInt8](repeating: 1, count: (512 << 10) + 1))
        try await app.saveSnapshot(file: "mine")
        try await app.discardSnapshot()
        let calls = supervisor.calls
        #expect(calls.first == .saveSnapshot(data: "AQID", file: nil, scene: nil))
        guard calls.count == 4, case .saveSnapshot(nil, let name?, nil) = calls[1] else {
            Issue.record("\(calls)")
            return
        }
        #expect(name.hasPrefix(".snapshot-"))
        #expect(!FileManager.default.fileExists(atPath: supervisor.folder + "/" + name))
        #expect(calls[2...] == [.saveSnapshot(data: nil, file: "mine", scene: nil), .discardSnapshot(scene: nil)])
    }
}
