// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// An app in a sandbox that makes the calls which the test writes down for it.
private struct Asking {
    let daemon: Daemon

    static func toml(_ alerts: String, permissions: Bool = true, more: String = "") -> String {
        """
        [supervisor.alerts]
        \(alerts)
        [apps.door]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        restart = "never"
        sandbox = true
        title = "Door"
        [apps.door.permissions]
        "files:@D/app.py:ro" = { purpose = "Its own program", default = "allow" }
        \(permissions ? "camera = { purpose = { default = \"Who is there\", de = \"Wer da ist\" } }" : "")
        network = { purpose = "Asks", ports = [443] }
        gpu = { purpose = "Draws", default = "deny" }
        \(more)
        """
    }

    static let commands = "desktop = \"none\"\ncommands = [[\"/bin/sh\", \"@D/show.sh\"]]"

    static let files = [
        "show.sh": """
        echo "$TORPOR_ALERT_APP|$TORPOR_ALERT_ID|$TORPOR_ALERT_TITLE|$TORPOR_ALERT_BODY|$TORPOR_ALERT_PERMISSION" \
        >>@D/shown
        """,
        "app.py": """
        import os, socket, time
        base = "@D/s/apps/door/"
        number = 0
        while True:
            while os.path.exists(base + "reply-%d" % number): number += 1
            if not os.path.exists(base + "call-%d" % number):
                time.sleep(0.01)
                continue
            call = open(base + "call-%d" % number, "rb").read()
            s = socket.socket(socket.AF_UNIX)
            s.connect(os.environ["TORPOR_APP_SOCKET"])
            s.sendall(call + b"\\0")
            reply = b""
            while not reply.endswith(b"\\0"):
                part = s.recv(65536)
                if not part: break
                reply += part
            s.close()
            with open(base + "new", "wb") as file: file.write(reply[:-1])
            os.rename(base + "new", base + "reply-%d" % number)
        """,
    ]

    static func run(
        _ toml: String,
        pause: Int? = nil,
        at location: SourceLocation = #_sourceLocation,
        _ body: (Asking) throws -> Void
    ) throws {
        var environment = ["TORPOR_RESTART_DELAY_CAP_MS": "0"]
        if let pause { environment["TORPOR_TEST_QUESTION_PAUSE_MS"] = "\(pause)" }
        try withDaemon(toml, files: files, environment: environment, at: location) { daemon in
            try daemon.done(.start, "door")
            try body(Asking(daemon: daemon))
        }
    }

    private var place: String { daemon.directory + "/s/apps/door/" }

    /// Has the app make a call; the reply, or the error with its parameters.
    func call(_ request: AppRequest) throws -> JSON {
        let number = (0...).first { !File.exists(place + "call-\($0)") } ?? 0
        let call = request.call
        let json: JSON = ["method": .string(call.method), "parameters": call.parameters]
        try Data(json.serialised()).write(to: URL(filePath: place + "call-\(number)"), options: .atomic)
        try daemon.eventually("the app has called: \(daemon.log.suffix(1500))") {
            File.exists(place + "reply-\(number)")
        }
        return try JSON.parse(Array(try File.readString(place + "reply-\(number)").utf8))
    }

    func request(_ name: String) throws -> PermissionReply {
        let reply = try call(.requestPermission(name: name))
        return try PermissionReply(json: reply["parameters"] ?? .null)
    }

    func error(_ request: AppRequest) throws -> String {
        let reply = try call(request)
        return (reply["error"]?.stringValue ?? "none") + ": " + (reply["parameters"]?["message"]?.stringValue ?? "")
    }

    var infos: [AlertInfo] {
        get throws {
            let reply = try daemon.call(.alerts(AlertsRequest()))
            return try Fields(reply).list("alerts") { json throws(FieldError) in try AlertInfo(json: json) }
        }
    }

    var shown: [String] {
        ((try? File.readString(daemon.directory + "/shown")) ?? "").split(separator: "\n").map(String.init)
    }

    func state(_ name: String) throws -> PermissionInfo? {
        try daemon.status("door").sandbox?.permissions.first { $0.name == name }
    }

    func answer(_ action: String, _ id: String = "permission/camera") throws {
        try daemon.call(.answerAlert(AnswerAlertRequest(app: "door", id: id, action: action)))
    }

    func decide(_ answer: PermissionVerdict, _ names: [String]) throws {
        try daemon.call(.answerPermissions(AnswerPermissionsRequest(app: "door", names: names, answer: answer)))
    }
}

@Suite(
    "An app asks for permissions",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct PermissionRequestTests {
    @Test("People are asked once, and once an hour; the answer at the alert counts as any other")
    func asks() throws {
        try Asking.run(Asking.toml(Asking.commands)) { door in
            let daemon = door.daemon
            let states = try door.call(.permissions)["parameters"]?["permissions"]?.arrayValue ?? []
            let all = try states.map { try PermissionStanding(json: $0) }
            #expect(all.map(\.state) == ["ask", "allow", "deny", "ask"], "\(all)")
            let first = try door.request("camera")
            #expect(first.state == "ask" && first.isAskedNow && first.nextAt == nil && first.message == nil)
            try daemon.eventually("people see it") { door.shown.count == 1 }
            #expect(door.shown == ["door|permission/camera|Allow the camera to Door?|Who is there|camera"])
            let info = try #require(try door.infos.first)
            #expect(info.permission == "camera" && info.actions.map(\.id) == ["allow", "deny"])
            let again = try door.request("camera")
            #expect(again.state == "ask" && !again.isAskedNow && again.message?.contains("asked already") == true)
            let other = try door.request("network")
            let next = try #require(other.nextAt)
            #expect(!other.isAskedNow && abs(next - Clock.realtimeMicroseconds() - 3_600_000_000) < 600_000_000)
            #expect(try door.request("gpu").state == "deny")
            // Neither a restart of torpord nor one of the app begins another hour.
            try daemon.replaceTorpord()
            try daemon.done(.restart, "door")
            try daemon.waitFor("door", "active")
            #expect(try door.request("network").nextAt == next)
            #expect(try door.infos.map(\.id) == ["permission/camera"])
            #expect(throws: (any Error).self) { try door.answer("default") }
            let pid = try #require(try daemon.summary("door").pid)
            try door.answer("allow")
            try daemon.eventually("it runs in another sandbox") {
                let summary = try daemon.summary("door")
                return summary.pid != nil && summary.pid != pid && summary.state == "active"
            }
            let answered = try #require(try door.state("camera"))
            #expect(answered.state == "allowed" && answered.by == "root" && answered.at != nil)
            #expect(try door.infos.isEmpty && daemon.summary("door").restarts == 0)
            let last = try door.request("camera")
            #expect(last.state == "allow" && !last.isAskedNow && last.nextAt == nil)
            #expect(door.shown.count == 1)
        }
    }

    @Test("The app cannot answer, cancel, replace or see its question, and what it does not declare is an error")
    func unreachable() throws {
        try Asking.run(Asking.toml(Asking.commands, more: "alerts = { purpose = \"Tells\", default = \"allow\" }")) {
            door in
            #expect(try door.request("camera").isAskedNow)
            #expect(try door.error(.cancelAlert(ids: ["permission/camera"])).contains("there is no alert"))
            #expect(try door.call(.cancelAlert(ids: nil))["parameters"]?["numbers"] == [])
            #expect(try door.call(.alerts)["parameters"]?["alerts"] == [])
            var alert = ScheduleAlertRequest(title: "Allow?")
            alert.id = "permission/camera"
            #expect(try door.error(.scheduleAlert(alert)).contains("InvalidParameter"))
            #expect(try door.infos.map(\.id) == ["permission/camera"] && door.state("camera")?.state == "asked")
            let number = try #require(try door.infos.first?.number)
            // Its socket has no such call.
            #expect(AppRequest.isMissing("AnswerAlert", ["number": .int(number)]))
            let undeclared = try door.error(.requestPermission(name: "camer"))
            #expect(undeclared.contains("door asks for no permission camer; did you mean camera?"), "\(undeclared)")
            #expect(undeclared.contains("[apps.door.permissions]"))
        }
    }

    @Test("A dismissed question is not asked again until the answer is reset; an answer elsewhere closes it")
    func dismissed() throws {
        try Asking.run(Asking.toml(Asking.commands), pause: 0) { door in
            #expect(try door.request("camera").isAskedNow)
            try door.daemon.call(.cancelAlerts(AlertsRequest(apps: ["door"])))
            let again = try door.request("camera")
            #expect(again.state == "ask" && !again.isAskedNow && again.nextAt == nil)
            #expect(again.message?.contains("torpor permissions door allow camera") == true)
            try door.daemon.replaceTorpord()
            #expect(try !door.request("camera").isAskedNow)
            try door.decide(.reset, ["camera"])
            #expect(try door.request("camera").isAskedNow)
            try door.decide(.deny, ["camera"])
            #expect(try door.infos.isEmpty && door.request("camera").state == "deny")
        }
    }

    @Test("Where no person can be asked, the app is told, and what a person can do")
    func nobody() throws {
        try Asking.run(Asking.toml("desktop = \"none\"")) { door in
            let error = try door.error(.requestPermission(name: "camera"))
            #expect(error.contains("no person can be asked") && error.contains("torpor permissions door allow camera"))
            #expect(try door.infos.isEmpty)
        }
    }

    @Test("Transfers go to no other ports than the app's network permission names")
    func transferPorts() throws {
        let more = """
            transfers = { purpose = "Loads", default = "allow" }
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            """
        try Asking.run(Asking.toml(Asking.commands, more: more)) { door in
            func start(_ url: String) throws -> String {
                try door.error(.startTransfer(StartTransferRequest(direction: "download", url: url, file: "page")))
            }
            #expect(try start("https://127.0.0.1/").contains("the permissions transfers and network"))
            let pid = try #require(try door.daemon.summary("door").pid)
            try door.decide(.allow, ["network"])
            try door.daemon.eventually("it runs in another sandbox") {
                let summary = try door.daemon.summary("door")
                return summary.pid != nil && summary.pid != pid && summary.state == "active"
            }
            #expect(try start("http://127.0.0.1/").contains("does not permit the port 80"))
            #expect(try start("https://127.0.0.1:8443/").contains("does not permit the port 8443"))
            #expect(try start("https://127.0.0.1/").hasPrefix("none: "))
        }
    }

    @Test("What torpord itself does for an app is withheld until it is allowed, which launches nothing again")
    func gifts() throws {
        let more = """
            alerts = { purpose = "Tells" }
            open-url = { purpose = "Shows pages" }
            transfers = { purpose = "Loads" }
            """
        try Asking.run(Asking.toml(Asking.commands, more: more)) { door in
            let pid = try door.daemon.summary("door").pid
            let alert = AppRequest.scheduleAlert(ScheduleAlertRequest(title: "Ring"))
            let transfer = StartTransferRequest(direction: "download", url: "https://127.0.0.1/", file: "page")
            func check(_ isAllowed: Bool) throws {
                let told = try door.error(alert)
                #expect(told.hasPrefix("none: ") == isAllowed, "\(told)")
                #expect(told.contains("it needs the permission alerts") != isAllowed, "\(told)")
                for request in [AppRequest.canOpen(scheme: "mailto"), .openURL("mailto:a@example.org", token: nil)] {
                    // Next the configuration decides.
                    let word = isAllowed ? "name the scheme in may_open" : "it needs the permission open-url"
                    let opened = try door.error(request)
                    #expect(opened.contains(word), "\(opened)")
                }
                // It needs the network too.
                #expect(try door.error(.startTransfer(transfer)).contains("the permissions transfers and network"))
            }
            try check(false)
            try door.decide(.allow, ["alerts", "open-url", "transfers"])
            try check(true)
            try door.decide(.deny, ["alerts", "open-url"])
            try check(false)
            #expect(try door.daemon.summary("door").pid == pid)
        }
    }

    @Test("A permission that is not declared any more is asked no more, nor is one of an app that is gone")
    func removed() throws {
        try Asking.run(Asking.toml(Asking.commands), pause: 0) { door in
            let daemon = door.daemon
            #expect(try door.request("camera").isAskedNow)
            #expect(try door.request("network").isAskedNow)
            try daemon.apply(Asking.toml(Asking.commands, permissions: false))
            #expect(try door.infos.map(\.id) == ["permission/network"])
            try daemon.apply(
                "[supervisor.alerts]\n\(Asking.commands)\n[apps.other]\nexec = [\"/bin/sleep\", \"1000\"]\n"
            )
            try daemon.eventually("it is gone") { try door.infos.isEmpty }
        }
    }

    @Test("A question about some ports is closed when the app asks for more of them")
    func wider() throws {
        let toml = Asking.toml(Asking.commands)
        try Asking.run(toml, pause: 0) { door in
            #expect(try door.request("network").isAskedNow)
            #expect(try door.infos.map(\.id) == ["permission/network"])
            try door.daemon.apply(toml.replacing(", ports = [443]", with: ""))
            #expect(try door.infos.isEmpty)
        }
    }

    @Test("An answer counts again when its app comes back into the configuration, until it is reset")
    func comesBack() throws {
        let none = "[apps.other]\nexec = [\"/bin/sleep\", \"1000\"]\n"
        try Asking.run(Asking.toml(Asking.commands)) { door in
            let daemon = door.daemon
            func goes() throws {
                try daemon.apply(none)
                try daemon.eventually("it is gone") { try !daemon.list().contains { $0.name == "door" } }
            }
            try door.decide(.deny, ["camera"])
            for isReplaced in [false, true] {
                try goes()
                if isReplaced { try daemon.replaceTorpord() }
                try daemon.apply(Asking.toml(Asking.commands))
                #expect(try door.state("camera")?.state == "denied" && door.state("camera")?.by == "root")
            }
            try goes()
            #expect(throws: (any Error).self) { try door.decide(.deny, ["camera"]) }
            try door.decide(.reset, [])
            #expect(throws: (any Error).self) { try door.decide(.reset, []) }
            try daemon.apply(Asking.toml(Asking.commands))
            #expect(try door.state("camera")?.state == "asked")
        }
    }
}

extension AppRequest {
    /// Whether an app's socket has no such method.
    fileprivate static func isMissing(_ member: String, _ parameters: JSON) -> Bool {
        do {
            let call = VarlinkCall(method: AppInterface.name + "." + member, parameters: parameters)
            return try AppRequest(call: call) == nil
        } catch {
            return false
        }
    }
}
