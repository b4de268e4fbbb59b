// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

/// The library's tests are asynchronous: they and the app under test share the pool of threads. Most other tests block
/// its threads while they wait for processes, so that among them nothing here would come to its turn for minutes. They
/// run all the same, in a process of their own, which one test starts.
extension Trait where Self == ConditionTrait {
    static var ownProcess: Self {
        .enabled(if: OwnProcess.isHere, "runs in a process of its own, which the test of OwnProcessTests starts")
    }
}

enum OwnProcess {
    static let variable = "TORPOR_OWN_PROCESS"
    /// So is a person's choice of these tests alone.
    static var isHere: Bool {
        ThisProcess.environment(variable) != nil || CommandLine.arguments.contains { $0.contains("TorporAppTests") }
    }
}

@Suite("The library for apps in Swift") struct OwnProcessTests {
    @Test("keeps its own tests, in a process of their own", .timeLimit(.minutes(3)))
    func all() throws {
        guard !OwnProcess.isHere else { return }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe")
        process.arguments = ["--testing-library", "swift-testing", "--filter", "TorporAppTests"]
        process.environment = ProcessInfo.processInfo.environment.merging([OwnProcess.variable: "1"]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text.suffix(4000))")
        let ran = text.split(separator: "\n").count { $0.contains("Test ") && $0.contains("passed after") }
        #expect(ran > 15, "only \(ran) ran: \(text.suffix(2000))")
    }
}
