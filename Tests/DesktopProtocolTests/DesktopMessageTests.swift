// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Testing
import Varlink

@Suite struct DesktopMessageTests {
    static let alert: DesktopAlert = {
        var alert = DesktopAlert(id: 7, app: "Notes", title: "Milk <b>&")
        alert.body = "line\nline"
        alert.urgency = .critical
        alert.sound = "bell"
        alert.actions = [.init(id: "later", label: "Later"), .init(id: "done", label: "Done")]
        alert.icon = "/usr/share/icons/notes.png"
        alert.entry = "io.torpor.notes"
        alert.place = ScreenPlace(server: "b :1.7", number: .max)
        return alert
    }()
    static let server = DesktopServer(name: "dunst 1.9.0", capabilities: ["actions", "body"])

    @Test(arguments: [
        DesktopCommand.hello, .show(alert), .show(DesktopAlert(id: .max, app: "a", title: "")), .close(id: .min),
        .badge(entry: "io.torpor.notes", count: 9999), .follow(.sway), .follow(.i3), .follow(nil), .acknowledge(id: 3),
        .raise(pids: [1, .max]), .raise(pids: []), .listen(true), .listen(false), .ping(number: 7),
    ])
    func `a command is the same on the other side`(command: DesktopCommand) throws {
        #expect(try DesktopCommand(json: JSON.parse(command.json.serialised())) == command)
    }

    @Test(arguments: [
        DesktopReport.here(ids: [1, .max], server: server), .here(ids: [], server: nil, version: 9), .server(server),
        .server(nil), .unseen(problem: nil), .unseen(problem: "no bus"),
        .shown(id: 1), .shown(id: 1, place: ScreenPlace(server: ":1.7", number: 0)), .failed(id: 2, reason: "no"),
        .closed(id: 3, .dismissed), .closed(id: 3, .expired),
        .answered(id: 4, action: "default", token: nil), .answered(id: 4, action: "x", token: "t"),
        .focused(pid: 5), .focused(pid: nil), .following(problem: nil), .following(problem: "no socket"),
        .following(problem: nil, manager: .max),
        .sound([]),
        .sound([DesktopSound(id: 7, pid: .max, isRecording: true, role: "Music"), DesktopSound(id: 8, pid: 1)]),
        .listening(problem: nil), .listening(problem: "no PipeWire"), .pong(number: .max),
    ])
    func `a report is the same on the other side`(report: DesktopReport) throws {
        #expect(try DesktopReport(json: JSON.parse(report.json.serialised())) == report)
    }

    @Test(arguments: [
        "{}", "[]", "null", #"{"command":"close"}"#, #"{"command":"close","id":"1"}"#, #"{"command":"show"}"#,
        #"{"command":"show","alert":{"id":1,"app":"a"}}"#, #"{"command":"follow","focus":"windows"}"#,
        #"{"command":"show","alert":{"id":1,"app":"a","title":"t","urgency":"dire"}}"#,
        #"{"command":"show","alert":{"id":1,"app":"a","title":"t","actions":[{"id":"x"}]}}"#,
        #"{"report":"shown","id":1,"place":{"server":":1.7","number":-1}}"#, #"{"report":"shown","id":1,"place":7}"#,
        #"{"command":"dance"}"#, #"{"report":"here","ids":["2"],"version":1}"#, #"{"report":"here","ids":[]}"#,
        #"{"report":"closed","id":1,"why":"bored"}"#, #"{"report":"focused","pid":-1}"#,
        #"{"report":"focused","pid":4294967296}"#, #"{"report":"answered","id":1}"#, #"{"report":"sing"}"#,
        #"{"report":"server","server":{"name":1}}"#, #"{"command":"raise","pids":[0]}"#,
        #"{"command":"raise","pids":["1"]}"#, #"{"command":"raise","pids":[4294967296]}"#,
        #"{"report":"unseen","problem":1}"#, #"{"command":"ping"}"#, #"{"report":"pong"}"#, #"{"command":"listen"}"#,
        #"{"report":"sound","streams":[{"id":1,"pid":0,"recording":false}]}"#,
        #"{"report":"sound","streams":[{"id":1,"pid":4294967296,"recording":false}]}"#,
        #"{"report":"sound","streams":[{"id":1,"pid":7}]}"#,
    ])
    func `an invalid message is an error`(text: String) throws {
        let json = try JSON.parse(Array(text.utf8))
        #expect(throws: FieldError.self) { try DesktopCommand(json: json) }
        #expect(throws: FieldError.self) { try DesktopReport(json: json) }
    }

    @Test func `very many streams fit`() throws {
        let all = (1...2 * DesktopSound.most).map { DesktopSound(id: Int64($0), pid: Int32($0)) }
        #expect(try DesktopReport(json: DesktopReport.sound(all).json) == .sound(Array(all.prefix(DesktopSound.most))))
        let role = String(repeating: "x", count: DesktopSound.longestRole + 1)
        #expect(DesktopSound(id: 1, pid: 1, role: role).role == nil)
    }

    @Test func `an app with very many processes fits`() throws {
        let most = DesktopCommand.mostPids
        let command = DesktopCommand.raise(pids: (1...2 * most).map { Int32($0) })
        #expect(try DesktopCommand(json: command.json) == .raise(pids: (1...most).map { Int32($0) }))
    }
}
