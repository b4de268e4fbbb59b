// SPDX-License-Identifier: Apache-2.0

import EventSources
import Lifecycle
import Mailbox
import Varlink
import WireText

/// The content of `TORPOR_LAUNCH_OPTIONS`: why and how an app is launched.
struct LaunchOptions {
    let order: LaunchOrder
    let event: WakeEvent?
    let url: String?
    let restoredState: String?
    let data: DataLaunch?
    let scene: SceneSession?

    /// The longest payload in the environment, in bytes. execve(2) limits a variable to 128 KiB. The app must fetch a
    /// larger payload from its mailbox.
    private static let longestPayload = 32 << 10

    /// The options as a JSON object.
    var json: JSON {
        var object = JSONObject()
        addMembers(to: &object)
        return .object(object)
    }

    /// The options as the text of a JSON object, without a ``JSON`` value for each: every launch needs this text.
    var text: String {
        var writer = JSONWriter()
        writer.appendObject { addMembers(to: &$0) }
        return writer.withBytes { String(wire: $0) }
    }

    private func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("reason", order.reason.rawValue)
        members.add("foreground", order.foreground)
        members.add("incarnation", Int64(order.incarnation))
        members.add("previous_termination", order.previousEnding?.rawValue)
        members.add("event", json: event?.json ?? .null)
        members.add("payload", json: payload)
        members.add("url", url)
        members.add("restored_state", restoredState)
        members.add("first_launch", json: data.map { .bool($0.isFirst) } ?? .null)
        members.add("updated_from", data?.updatedFrom)
        members.add("scene", scene?.name)
        members.add("session", json: scene?.options ?? .null)
    }

    private var payload: JSON {
        guard let payload = event?.mail?.payload else { return .null }
        return payload.serialised().count <= Self.longestPayload ? payload : .null
    }
}
