// SPDX-License-Identifier: Apache-2.0

import Engine
import EventSources
import Lifecycle
import Mailbox
import Testing
import Varlink

@testable import Supervisor

@Suite("The options of a launch")
struct LaunchOptionsTests {
    private let order = AppMachine(rules: AppRules()).launchOrder

    @Test("are the same as text and as JSON")
    func text() throws {
        let bare = LaunchOptions(order: order, event: nil, url: nil, restoredState: nil, data: nil, scene: nil)
        #expect(bare.text == bare.json.description)
        #expect(try JSON.parse(bare.text) == bare.json)
        let members = ["event", "payload", "url", "restored_state", "first_launch", "updated_from", "scene", "session"]
        for member in members { #expect(bare.json[member] == .null) }
        var scene = SceneSession(app: "code@ü", template: "code", name: "ü", openedAt: 7)
        scene.options = ["file": "/tmp/a\u{1b}\"b\""]
        let mail = MailDraft(topic: "weather", message: "rain", payload: ["mm": 3], sender: "web")
        let full = LaunchOptions(
            order: order,
            event: WakeEvent(.message, "weather", "rain", mail: mail, at: .zero),
            url: "x:a",
            restoredState: "/state",
            data: DataLaunch(incarnation: 3, isFirst: true, updatedFrom: "1.0", version: "2.0"),
            scene: scene
        )
        #expect(full.text == full.json.description)
        #expect(try JSON.parse(full.text) == full.json)
        #expect(full.json["payload"] == ["mm": 3] && full.json["first_launch"] == true)
        #expect(full.json["updated_from"] == "1.0" && full.json["session"] == scene.options)
    }

    @Test("have no payload that is too long for a variable")
    func longPayload() {
        func payload(_ count: Int) -> JSON? {
            let draft = MailDraft(
                topic: "t",
                message: "m",
                payload: .string(String(repeating: "x", count: count)),
                sender: "web"
            )
            let event = WakeEvent(.message, "t", "text", mail: draft, at: .zero)
            let options = LaunchOptions(
                order: order,
                event: event,
                url: nil,
                restoredState: nil,
                data: nil,
                scene: nil
            )
            return options.json["payload"]
        }
        #expect(payload((32 << 10) - 2)?.stringValue?.utf8.count == (32 << 10) - 2)
        #expect(payload((32 << 10) - 1) == .null)
    }
}
