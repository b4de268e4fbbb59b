// SPDX-License-Identifier: Apache-2.0

package import Engine
package import Lifecycle
import Linux
package import Varlink

/// The part of an app's recovery state that contains names, and so does not fit into a record of fixed size: tasks,
/// holds, and messages that no transition waits for.
package struct ChannelLedger: Hashable {
    /// A background task.
    struct Task: Hashable {
        var task: BackgroundTask
        /// Whether sd_notify began the task.
        var isNotify: Bool
        /// The process that began the task; nil if it is unknown.
        var process: Int32?
    }

    /// A message that was not answered yet.
    struct Told: Hashable {
        var id: UInt32
        var message: Message
        /// The token of the task that a `taskExpiring` message is about.
        var task: UInt32?
        /// The URL of an `openURL` message.
        var url: String?
        /// The number of the mail in the app's mailbox; nil if the message carries no mail.
        var mail: Int64?
        /// The scene inside the app that the message is about.
        var scene: SceneID?
        /// The full name of the scene that the message is about.
        var sceneName: String?
    }

    /// The incarnation (launch number) of the app that the tasks and messages belong to.
    package var incarnation: UInt32
    var tasks: [Task] = []
    package var holds: [Hold] = []
    var messages: [Told] = []
    /// The process that the messages were sent to.
    var delegate: Int32?
    /// The scenes inside the app.
    var scenes: [SceneEntry] = []
    /// A URL to open that an earlier version of torpord has stored; in this version URLs are mail.
    package var url: String?

    package init(incarnation: UInt32) { self.incarnation = incarnation }

    /// Reads what ``json`` wrote; nil if the bytes are not a ledger. Skips entries that are invalid.
    package init?(_ bytes: [UInt8]) {
        guard let json = try? JSON.parse(bytes[...]), json.objectValue != nil else { return nil }
        // If the number is missing, use 0. No launch has this number, so the tasks and messages then belong to no
        // launch.
        incarnation = json["incarnation"]?.intValue.flatMap { UInt32(exactly: $0) } ?? 0
        url = json["url"]?.stringValue
        holds = (json["holds"]?.arrayValue ?? []).map { hold in
            Hold(
                reason: hold["reason"]?.stringValue ?? "",
                until: hold["until_us"]?.intValue.map { .microseconds($0) }
            )
        }
        tasks = (json["tasks"]?.arrayValue ?? []).compactMap { task in
            guard let token = task["token"]?.intValue.flatMap({ UInt32(exactly: $0) }),
                let name = task["name"]?.stringValue
            else { return nil }
            let isWarned = task["warned"]?.boolValue ?? false
            return Task(
                task: BackgroundTask(token: token, name: name, isWarned: isWarned),
                isNotify: task["notify"]?.boolValue ?? false,
                process: task["process"]?.intValue.flatMap { Int32(exactly: $0) }
            )
        }
        messages = (json["messages"]?.arrayValue ?? []).compactMap { message in
            guard let id = message["id"]?.intValue.flatMap({ UInt32(exactly: $0) }),
                let name = message["name"]?.stringValue.flatMap({ Message(rawValue: $0) })
            else { return nil }
            return Told(
                id: id,
                message: name,
                task: message["task"]?.intValue.flatMap { UInt32(exactly: $0) },
                url: message["url"]?.stringValue,
                mail: message["mail"]?.intValue,
                scene: message["scene"]?.intValue.flatMap { SceneID(exactly: $0) },
                sceneName: message["scene_name"]?.stringValue
            )
        }
        delegate = json["delegate"]?.intValue.flatMap { Int32(exactly: $0) }
        scenes = (json["scenes"]?.arrayValue ?? []).compactMap { SceneEntry($0) }
    }

    /// The tasks and messages as JSON, in the form in which a file stores them for the next torpord.
    package var json: JSON {
        [
            "incarnation": .int(Int64(incarnation)),
            "tasks": .array(
                tasks.map { entry in
                    [
                        "token": .int(Int64(entry.task.token)), "name": .string(entry.task.name),
                        "warned": .bool(entry.task.isWarned), "notify": .bool(entry.isNotify),
                        "process": .optional(entry.process.map(Int64.init)),
                    ]
                }
            ),
            "holds": .array(
                holds.map { ["reason": .string($0.reason), "until_us": .optional($0.until?.microseconds)] }
            ),
            "messages": .array(
                messages.map { message in
                    [
                        "id": .int(Int64(message.id)), "name": .string(message.message.rawValue),
                        "task": .optional(message.task.map(Int64.init)), "url": .optional(message.url),
                        "mail": .optional(message.mail), "scene": .optional(message.scene.map(Int64.init)),
                        "scene_name": .optional(message.sceneName),
                    ]
                }
            ),
            "delegate": .optional(delegate.map(Int64.init)),
            "scenes": .array(scenes.map(\.json)),
            "url": .optional(url),
        ]
    }
}

extension AppRuntime {
    /// The content of the app's ledger file (``ChannelLedger``) as torpord has last written it, so that an unchanged
    /// ledger is not written again; nil if there is no such file.
    package var ledger: [UInt8]? {
        get { slots[LedgerSlot.self] }
        set { slots[LedgerSlot.self] = newValue }
    }
}

private enum LedgerSlot: Slot { typealias Value = [UInt8] }
