// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI
import Varlink

@Suite("What an app asks of its transfers") struct AppTransferTests {
    @Test("survives the wire, and is in the interface's text") func requests() throws {
        var start = StartTransferRequest(direction: "upload", url: "https://h/", file: "f")
        var requests: [AppRequest] = [.startTransfer(start)]
        (start.session, start.method, start.sha256, start.priority) = ("s", "POST", "ab", -3)
        start.headers = [.init(name: "A", value: "b: c"), .init(name: "A", value: "")]
        (start.isDiscretionary, start.events, start.retry, start.token) = (true, false, true, .random())
        requests.append(.startTransfer(start))
        requests += [.transfers(session: nil), .transfers(session: "s"), .transfers(session: nil, after: 7)]
        requests.append(.cancelTransfer(id: 7))
        var login = AnswerLoginRequest(id: 7)
        (login.user, login.password) = ("u", "")
        requests.append(.answerLogin(login))
        login = AnswerLoginRequest(id: 7)
        login.header = "Bearer x"
        requests.append(.answerLogin(login))
        login = AnswerLoginRequest(id: 7)
        login.cancel = true
        requests.append(.answerLogin(login))
        for request in requests {
            #expect(AppInterface.description.contains("method \(request.call.member)("))
            #expect(try AppRequest(call: VarlinkCall(json: request.call.json)) == request)
        }
    }

    @Test(
        "An answer to a login is one of three",
        arguments: [
            ["id": 1], ["id": 1, "user": "u"], ["id": 1, "password": "p"],
            ["id": 1, "user": "u", "password": "p", "cancel": true],
            ["id": 1, "header": "h", "cancel": true], ["user": "u", "password": "p"],
        ] as [JSON]
    )
    func logins(parameters: JSON) throws {
        let call = VarlinkCall(method: "\(AppInterface.name).AnswerLogin", parameters: parameters)
        #expect(throws: FieldError.self) { try AppRequest(call: call) }
    }
}
