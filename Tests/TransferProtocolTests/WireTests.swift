// SPDX-License-Identifier: Apache-2.0

import Testing
import TransferProtocol
import Varlink

@Suite struct WireTests {
    static let order: TransferOrder = {
        var order = TransferOrder(id: 7, direction: .download, url: "http://a/b", root: 1, file: "c/d", method: "GET")
        order.headers = [TransferHeader(name: "A", value: ""), TransferHeader(name: "A", value: "b: c")]
        order.sha256 = "00"
        order.validator = TransferValidator(condition: "\"x\"", total: 5)
        order.source = TransferSource(size: 1, modified: -2)
        order.sizeLimit = .max
        order.minimumFree = 9
        order.isDiscretionary = true
        order.credentials = TransferCredentials(user: "u", password: "p")
        order.authority = "/ca"
        return order
    }()

    static let end: TransferEnd = {
        var end = TransferEnd(.login, bytes: 3, hasGained: true)
        end.reason = "http-status"
        end.message = "m"
        end.status = 401
        end.sha256 = "ab"
        end.retryAfter = 1
        end.realm = "r"
        end.scheme = "s"
        return end
    }()

    @Test(arguments: [
        TransferCommand.hello, .start(order), .go(id: 1), .stop(id: .min), .discard(id: .max), .acknowledge(id: 0),
        .rate(nil), .rate(5),
        .start(TransferOrder(id: 1, direction: .upload, url: "u", root: 0, file: "f", method: "PUT")),
    ])
    func `a command is the same on the other side`(command: TransferCommand) throws {
        #expect(try TransferCommand(json: JSON.parse(command.json.serialised())) == command)
    }

    @Test(arguments: [
        TransferReport.here(ids: []), .here(ids: [1, .max]),
        .head(id: 1, validator: TransferValidator(condition: nil, total: nil), offset: 0),
        .head(id: 1, validator: TransferValidator(condition: "\"a\"", total: 3), offset: 2),
        .source(id: 2, TransferSource(size: 3, modified: 4)), .progress(id: 1, bytes: 2, total: nil),
        .progress(id: 1, bytes: 2, total: 3), .ended(id: 9, TransferEnd(.done, bytes: 0)), .ended(id: 9, end),
    ])
    func `a report is the same on the other side`(report: TransferReport) throws {
        #expect(try TransferReport(json: JSON.parse(report.json.serialised())) == report)
    }

    @Test(arguments: [
        "{}", "[]", "null", #"{"command":"go"}"#, #"{"command":"go","id":"1"}"#, #"{"command":"start"}"#,
        #"{"command":"start","order":{"id":1,"direction":"sideways","url":"","root":0,"file":"","method":""}}"#,
        #"{"command":"start","order":{"id":1,"direction":"upload","url":"","root":-1,"file":"","method":""}}"#,
        #"{"command":"dance"}"#, #"{"report":"here","ids":[1,"2"]}"#, #"{"report":"ended","id":1}"#,
        #"{"report":"ended","id":1,"end":{"outcome":"won"}}"#, #"{"report":"progress","id":1}"#,
    ])
    func `what is none is refused`(text: String) throws {
        let json = try JSON.parse(text)
        #expect(throws: FieldError.self) { try TransferCommand(json: json) }
        #expect(throws: FieldError.self) { try TransferReport(json: json) }
    }

    @Test(arguments: [
        ("http://Example.ORG", "example.org:80", "/"), ("https://a:8443/b?c#d", "a:8443", "/b?c"),
        ("http://a?x", "a:80", "/?x"), ("http://[::1]/", "[::1]:80", "/"), ("https://a:/", "a:443", "/"),
    ])
    func `the parts of a URL`(url: String, server: String, path: String) {
        let address = WebAddress(url)
        #expect(address?.server == server && address?.path == path)
        #expect(address?.isSecure == url.hasPrefix("https"))
    }
}
