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
                var post = StartTransferRequest(direction: "upload", url: "https://h/post", file: "f")
                post.method = "POST"
                post.headers = [StartTransferRequest.Header(name: "Authorization", value: "Bearer x")]
                let posted = try await app.startTransfer(post)
                #expect(posted == 17)
                let sessions = try await app.transfers(session: "s").map(\.session)
                #expect(sessions == ["s"])
                try await app.cancelTransfer(17)
                try await app.answerLogin(17, user: "u", password: "p")
                try await app.answerLogin(17, user: nil, password: nil)
                try await app.answerLogin(17, header: "Bearer y")
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        let requests = supervisor.calls.compactMap { if case .startTransfer(let request) = $0 { request } else { nil } }
        #expect(requests.map(\.direction) == ["download", "upload", "download", "upload"])
        #expect(requests[0].sha256 == "ab" && requests[0].session == "s" && requests[0].isDiscretionary)
        #expect(requests[3].method == "POST" && requests[3].headers.map(\.value) == ["Bearer x"])
        #expect(Set(requests.map(\.token)).count == 4 && requests.allSatisfy { $0.token != nil })
        let logins = supervisor.calls.compactMap { if case .answerLogin(let request) = $0 { request } else { nil } }
        #expect(logins.map(\.user) == ["u", nil, nil] && logins.map(\.password) == ["p", nil, nil])
        #expect(logins.map(\.cancel) == [false, true, false] && logins.map(\.header) == [nil, nil, "Bearer y"])
        #expect(supervisor.calls.count { $0.call.member == "CancelTransfer" } == 1)
    }
}
