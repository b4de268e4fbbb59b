// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import Lifecycle
import Linux
import Mailbox
import Testing
import TorporAPI
import Varlink

@testable import Supervisor

/// What activities need of the other rooms, as tests want it to be.
private final class FakeActivityHost: ActivityHost {
    let mailboxes: Mailboxes
    var hidden: Set<AppID> = []
    var inheritance = InheritedDescriptors()
    var isSuccessor = false
    private(set) var held: [String: Int32] = [:]

    init(_ mailboxes: Mailboxes) { self.mailboxes = mailboxes }

    func isInForeground(_ app: AppRuntime) -> Bool {
        let state = mailboxes.engine.machine(app.id).state
        return (state == .active || state == .inactive) && !hidden.contains(app.id)
    }
    func hold(_ name: String, _ descriptor: Int32) { held[name] = descriptor }
    func hold(_ name: String, _ descriptors: [Int32], replacing: Bool) { held[name] = descriptors.first }
    func release(_ name: String) { held[name] = nil }
}

@Suite("What users do in apps") struct ActivitiesTests {
    private static let type = "org.example.note"
    private static let more = """
        ready = "delegate"
        [apps.editor]
        exec = ["/bin/true"]
        launch = "on-demand"
        ready = "delegate"
        activities = ["org.example.note"]
        """

    private struct Rooms {
        let mail: FakeMail
        let host: FakeActivityHost
        let room: Activities

        init() throws {
            mail = try FakeMail(ActivitiesTests.more)
            host = FakeActivityHost(mail.boxes)
            room = Activities(mail.shell.engine, mail.shell.recorder, host)
            mail.shell.engine.add(room)
            mail.shell.hands.onAction = { [unowned engine = mail.shell.engine] app, action in
                guard case .tell(let message) = action else { return }
                if message == .willFinishLaunching { engine.deliver(.delegate(attached: true), to: app.id) }
                engine.deliver(.answered(message), to: app.id)
            }
            try mail.shell.start("web")
        }

        var web: AppRuntime { mail.web }
        var editor: AppRuntime { mail.shell.app("editor") }

        func set(
            _ type: String = ActivitiesTests.type,
            _ change: (inout SetActivityRequest) -> Void = { _ in }
        ) -> String? {
            var request = SetActivityRequest(type: type)
            change(&request)
            switch room.set(request, of: web) {
            case nil: return nil
            case .invalid(let error)?: return error.field
            case .failed(let text)?: return text
            }
        }

        func waiting(_ app: AppRuntime) -> [String] { mail.boxes.waiting(for: app).map(\.draft.message) }
    }

    @Test("are the app's current ones, until others, their end, and five minutes in the background") func ends() throws
    {
        let rooms = try Rooms()
        try #require(rooms.mail.shell.state("web") == .active)
        #expect(rooms.set { $0.title = "Shopping" } == nil)
        #expect(rooms.room.infos.map(\.title) == ["Shopping"])
        #expect(rooms.set("org.example.list") == nil && rooms.room.types == ["org.example.list"])
        rooms.room.end(of: rooms.web)
        #expect(rooms.room.infos.isEmpty)
        #expect(rooms.set() == nil)
        try rooms.mail.shell.request(.background, "web")
        try #require(rooms.mail.shell.state("web") == .background)
        #expect(rooms.set()?.contains("not in the foreground") ?? false)
        try rooms.mail.shell.pass(.seconds(299))
        #expect(rooms.room.types == [Self.type])
        try rooms.mail.shell.request(.foreground, "web")
        try rooms.mail.shell.pass(.seconds(600))
        #expect(rooms.room.types == [Self.type])
        try rooms.mail.shell.request(.background, "web")
        try rooms.mail.shell.pass(.seconds(301))
        #expect(rooms.room.infos.isEmpty)
    }

    @Test("are bounded, and refused with what is wrong") func bounds() throws {
        let rooms = try Rooms()
        for bad in ["", "a b", "ä", "a/b", String(repeating: "x", count: 129)] { #expect(rooms.set(bad) == "type") }
        #expect(rooms.set { $0.title = "a\nb" } == "title")
        #expect(rooms.set { $0.title = String(repeating: "x", count: 513) } == "title")
        #expect(rooms.set { $0.payload = 7 } == "payload")
        #expect(rooms.set { $0.payload = ["a": .string(String(repeating: "x", count: 64 << 10))] } == "payload")
        #expect(rooms.set { $0.url = "javascript:x" } == "url")
        #expect(rooms.room.infos.isEmpty)
        #expect(rooms.set { $0.payload = ["a": .string(String(repeating: "x", count: (64 << 10) - 9))] } == nil)
        rooms.host.hidden = [rooms.web.id]
        #expect(rooms.set()?.contains("not in the foreground") ?? false)
    }

    @Test("wait for the app that continues them, and do not come if they end before") func fails() throws {
        let rooms = try Rooms()
        #expect(rooms.set() == nil)
        #expect(rooms.room.receivers(of: Self.type, except: rooms.web, named: nil).map(\.name) == ["editor"])
        let found = try #require(rooms.room.find(Self.type, from: nil))
        let id = try rooms.mail.boxes.continueActivity(
            found.activity,
            of: found.app,
            from: "person",
            key: "k",
            rooms.editor
        )
        #expect(rooms.waiting(rooms.editor) == ["willContinueActivity", "continueActivity"])
        let again = try rooms.mail.boxes.continueActivity(
            found.activity,
            of: found.app,
            from: "person",
            key: "k",
            rooms.editor
        )
        #expect(again == id && rooms.waiting(rooms.editor).count == 2)
        rooms.room.end(of: rooms.web)
        #expect(rooms.waiting(rooms.editor) == ["willContinueActivity", "didFailToContinueActivity"])
        #expect(rooms.editor.failedActivity?.id == id && rooms.editor.failedActivity?.failure != nil)
        for _ in 0..<4 {
            _ = try rooms.mail.boxes.continueActivity(found.activity, of: nil, from: "person", key: nil, rooms.editor)
        }
        #expect(throws: URLRefusal.self) {
            _ = try rooms.mail.boxes.continueActivity(found.activity, of: nil, from: "person", key: nil, rooms.editor)
        }
    }

    @Test("of one app are at most half of those that wait") func share() throws {
        let rooms = try Rooms()
        #expect(rooms.set() == nil)
        let activity = try #require(rooms.room.find(Self.type, from: nil)).activity
        func go(of source: AppRuntime?) throws {
            _ = try rooms.mail.boxes.continueActivity(activity, of: source, from: "person", key: nil, rooms.editor)
        }
        for _ in 0..<2 { try go(of: rooms.web) }
        #expect(throws: URLRefusal.self) { try go(of: rooms.web) }
        // A refused activity is not announced.
        #expect(rooms.waiting(rooms.editor).count == 4)
        for _ in 0..<2 { try go(of: nil) }
    }

    @Test("are withdrawn together with their announcement, unless the app was told it") func withdrawn() throws {
        let rooms = try Rooms()
        let boxes = rooms.mail.boxes
        #expect(rooms.set() == nil)
        let activity = try #require(rooms.room.find(Self.type, from: nil)).activity
        func add() throws -> Int64 {
            try boxes.continueActivity(activity, of: rooms.web, from: "person", key: nil, rooms.editor)
        }
        let first = try add()
        let second = try add()
        boxes.withdraw(second, of: rooms.editor)
        #expect(rooms.waiting(rooms.editor) == ["willContinueActivity", "continueActivity"])
        #expect(boxes.waiting(for: rooms.editor).last?.id == first)
        let announcement = try #require(boxes.waiting(for: rooms.editor).first?.id)
        boxes.markTold(announcement, of: rooms.editor)
        boxes.withdraw(first, of: rooms.editor)
        #expect(rooms.waiting(rooms.editor) == ["willContinueActivity", "didFailToContinueActivity"])
        boxes.acknowledged(announcement, by: rooms.editor)
        // The app has answered the announcement, and another one still waits.
        let third = try add()
        let fourth = try add()
        let last = try #require(boxes.waiting(for: rooms.editor).last { $0.id < fourth }?.id)
        boxes.acknowledged(last, by: rooms.editor)
        boxes.withdraw(fourth, of: rooms.editor)
        #expect(
            rooms.waiting(rooms.editor) == [
                "didFailToContinueActivity", "willContinueActivity", "continueActivity", "didFailToContinueActivity",
            ]
        )
        #expect(boxes.waiting(for: rooms.editor).contains { $0.id == third })
    }

    @Test(
        "are continued by an app that takes them from its mailbox, and their app learns it",
        arguments: [false, true]
    )
    func taken(keeps: Bool) throws {
        let rooms = try Rooms()
        #expect(rooms.set() == nil)
        let activity = try #require(rooms.room.find(Self.type, from: nil)).activity
        let id = try rooms.mail.boxes.continueActivity(
            activity,
            of: rooms.web,
            from: "person",
            key: nil,
            rooms.editor
        )
        var request = TakeRequest()
        request.keep = keeps
        #expect(rooms.mail.boxes.take(request, rooms.editor).count == 2)
        if keeps {
            #expect(rooms.waiting(rooms.web).isEmpty && rooms.waiting(rooms.editor).count == 2)
            request.done = [id]
            _ = rooms.mail.boxes.take(request, rooms.editor)
            // An app that says it twice has continued the activity once.
            let waiting = rooms.mail.boxes.waiting(for: rooms.web)
            _ = rooms.mail.boxes.take(request, rooms.editor)
            #expect(rooms.mail.boxes.waiting(for: rooms.web) == waiting)
        }
        #expect(rooms.waiting(rooms.web) == ["activityWasContinued"])
    }

    @Test("are known to the next torpord, for the same run of the app") func kept() throws {
        let rooms = try Rooms()
        #expect(rooms.set { ($0.payload, $0.needsState) = (["line": 12], true) } == nil)
        let fd = try #require(rooms.host.held[DescriptorName.activities])
        let next = FakeActivityHost(rooms.mail.boxes)
        next.inheritance = InheritedDescriptors([(DescriptorName.activities, [try Descriptor.duplicate(fd)])])
        let room = Activities(rooms.mail.shell.engine, rooms.mail.shell.recorder, next)
        room.takeOver()
        let info = try #require(room.info(of: rooms.web))
        #expect(info == rooms.room.info(of: rooms.web) && info.payload == ["line": 12] && info.needsState)
        // What is there is not what was written: nothing is taken over.
        try File.truncate(fd, to: 0)
        try File.write(
            fd,
            at: 0,
            Array(#"{"app":"web","type":"a b","title":"","since":1,"state":false,"incarnation":1}"#.utf8)
        )
        let last = FakeActivityHost(rooms.mail.boxes)
        last.inheritance = InheritedDescriptors([(DescriptorName.activities, [try Descriptor.duplicate(fd)])])
        let other = Activities(rooms.mail.shell.engine, rooms.mail.shell.recorder, last)
        other.takeOver()
        #expect(other.infos.isEmpty)
        withExtendedLifetime((rooms, next, last)) {}
    }
}
