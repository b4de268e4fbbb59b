// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI

@testable import TorporApp

@Suite(.ownProcess) struct TransferCallTests {
    @Test("transfers are begun, listed, cancelled and given a login") func calls() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "didFinishLaunching": { app in
                let id = try await app.download(
                    "https://h/",
                    to: "f",
                    session: "s",
                    sha256: "ab",
                    isDiscretionary: true
                )
                let other = try await app.upload("f", to: "http://h/")
                #expect(id == 17 && other == 17)
                await #expect(throws: AppError.self) { try await app.download("ftp://h/", to: "f") }
                let sessions = try await app.transfers(session: "s").map(\.session)
                #expect(sessions == ["s"])
                try await app.cancelTransfer(17)
                try await app.answerLogin(17, user: "u", password: "p")
                try await app.answerLogin(17, user: nil, password: nil)
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        let requests = supervisor.calls.compactMap { if case .startTransfer(let request) = $0 { request } else { nil } }
        #expect(requests.map(\.direction) == ["download", "upload", "download"])
        #expect(requests[0].sha256 == "ab" && requests[0].session == "s" && requests[0].isDiscretionary)
        #expect(requests.allSatisfy { $0.token != nil })
        let members = supervisor.calls.map(\.call.member)
        #expect(members.filter { $0 == "AnswerLogin" || $0 == "CancelTransfer" }.count == 3)
    }
}
