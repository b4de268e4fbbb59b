// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
import Lifecycle
import TorporAPI
import VarlinkServer

/// What an app is told and says on its own socket, in one incarnation: a queue of messages of which one is in flight,
/// the delegate that hears them, and whose the background tasks are.
///
/// Numbers are given out when the core decides that something is told, before that is recorded: so a torpord that takes
/// over gives the same message the same number, and a delegate that has it already is not told again.
final class AppChannel {
    /// A message on its way.
    struct Outgoing {
        let id: UInt32
        let message: Message
        /// The edge in flight waits for its answer.
        var isAwaited: Bool
        /// Of taskExpiring.
        var task: UInt32?
        /// Of openURL, as torpords before this version told it: now it is mail.
        var url: String?
        /// What of its mailbox it is.
        var mail: Int64?
        /// The scene inside the app that it is about.
        var scene: SceneID?
        /// Others were to be answered first.
        var hasWaited = false
    }

    /// The process that hears messages.
    struct Delegate {
        let reply: Reply
        let pid: Int32
        /// The last message that was sent to it.
        var sent: UInt32 = 0
    }

    /// Who ends a task by being gone.
    enum TaskOwner: Hashable {
        /// The connection that began or claimed it.
        case connection(UInt64)
        /// Nobody: it was begun by sd_notify and ends by it, or with the app.
        case notify
        /// A connection to a torpord before this one: it ends when nobody claims it in time.
        case lost
    }

    /// The number of the last message.
    var lastID: UInt32 = 0
    /// The last one that was answered.
    var answeredID: UInt32 = 0
    /// Not answered yet; the first is in flight once it was sent.
    var queue: [Outgoing] = []
    var delegate: Delegate?
    var owners: [UInt32: TaskOwner] = [:]
    /// Ends what a connection held that is gone, unless it comes back at once.
    var goneTimers: [UInt64: TimerSource] = [:]
    /// Runs while a delegate of a torpord before this one, or tasks of it, are waited for.
    var returnTimer: TimerSource?

    init() {}

    /// Appends a message, and gives it its number.
    func add(
        _ message: Message,
        isAwaited: Bool,
        task: UInt32? = nil,
        mail: Int64? = nil,
        scene: SceneID? = nil
    ) {
        lastID &+= 1
        var outgoing = Outgoing(id: lastID, message: message, isAwaited: isAwaited, hasWaited: !queue.isEmpty)
        outgoing.task = task
        outgoing.mail = mail
        outgoing.scene = scene
        queue.append(outgoing)
    }

    /// The number of the message that the edge in flight waits for; 0 for none.
    var awaitedID: UInt32 { queue.last { $0.isAwaited }?.id ?? 0 }
}

extension AppRuntime {
    /// What it is told on its socket, and says there.
    var channel: AppChannel? {
        get { slots[ChannelSlot.self] }
        set { slots[ChannelSlot.self] = newValue }
    }

    /// What of its mailbox it answered last.
    package var lastAnswered: AnsweredMail? {
        get { slots[LastAnsweredSlot.self] }
        set { slots[LastAnsweredSlot.self] = newValue }
    }
}

/// What an app answered to something of its mailbox.
package struct AnsweredMail {
    /// Its number.
    package let id: Int64
    /// What names it, or the request that it came by.
    package let key: String?
    /// Why it did not work, in the app's words; nil where it did.
    package let failure: String?
}

private enum ChannelSlot: Slot { typealias Value = AppChannel }
private enum LastAnsweredSlot: Slot { typealias Value = AnsweredMail }
