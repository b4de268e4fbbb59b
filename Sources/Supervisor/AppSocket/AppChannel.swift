// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
import Lifecycle
import TorporAPI
import VarlinkServer

/// The messages on an app's own socket during one incarnation (one run of the app): a queue, whose first message is in
/// flight; the delegate, which is the process that receives the messages; and the owners of the background tasks.
///
/// A message gets its number when the core decides to send it, before the decision is recorded. So after a takeover,
/// the next torpord gives the message the same number, and does not send it twice to the same delegate.
final class AppChannel {
    /// A message that was not answered yet.
    struct Outgoing {
        var id: UInt32
        let message: Message
        /// Whether the app's current transition waits for the answer to this message.
        var isAwaited: Bool
        /// The token of the task that a `taskExpiring` message is about.
        var task: UInt32?
        /// The URL of an `openURL` message that an earlier version of torpord has queued; in this version URLs are
        /// mail.
        var url: String?
        /// The number of the mail in the app's mailbox; nil if the message carries no mail.
        var mail: Int64?
        /// The scene inside the app that the message is about.
        var scene: SceneID?
        /// Whether the message has to wait in the queue behind other messages. False once it was sent.
        var hasWaited = false
        /// When the message was queued; nil for mail.
        var since: Duration?

        /// Whether a transition of the app or of a scene waits for the answer to this message.
        var isOfTransition: Bool { isAwaited || scene != nil }
    }

    /// The process that receives the app's messages.
    struct Delegate {
        let reply: Reply
        let pid: Int32
        /// The number of the last message that was sent to the delegate.
        var sent: UInt32 = 0
        /// Watches the process; nil if it is the app's main process, whose end ends the app.
        var watch: DelegateWatch?
    }

    /// What a background task belongs to. When the owner is gone, the task ends.
    enum TaskOwner: Hashable {
        /// The connection that began or claimed the task.
        case connection(UInt64)
        /// No connection. The task was begun by sd_notify, and ends by sd_notify or together with the app.
        case notify
        /// A connection to an earlier torpord: the task ends unless a connection claims it within
        /// ``AppSockets/returnTime``, or its process (``AppChannel/lostOwners``) still runs.
        case lost
    }

    /// The number of the newest message.
    var lastID: UInt32 = 0
    /// The number of the last message that was answered.
    var answeredID: UInt32 = 0
    /// Messages that were not answered yet. The first one is in flight, if it was sent.
    var queue: [Outgoing] = []
    var delegate: Delegate?
    /// The process that was the delegate under the torpord before; nil if that is unknown.
    var earlierDelegate: Int32?
    /// The mail that a delegate was told again after it had connected again, and how many times.
    var retold: (mail: Int64, count: Int)?
    var owners: [UInt32: TaskOwner] = [:]
    /// The processes that began tasks over a connection to an earlier torpord, as far as they are known.
    var lostOwners: [UInt32: Int32] = [:]
    /// For each closed connection, a timer that ends the connection's tasks and delegate, unless the process reconnects
    /// first.
    var goneTimers: [UInt64: TimerSource] = [:]
    /// Runs while torpord waits for processes to reconnect that an earlier torpord knew: the delegate, and processes
    /// that had tasks.
    var returnTimer: TimerSource?

    init() {}

    /// Numbers a message, and appends it to the queue.
    func add(
        _ message: Message,
        isAwaited: Bool,
        task: UInt32? = nil,
        mail: Int64? = nil,
        scene: SceneID? = nil,
        since: Duration? = nil
    ) {
        lastID &+= 1
        var outgoing = Outgoing(id: lastID, message: message, isAwaited: isAwaited, hasWaited: !queue.isEmpty)
        outgoing.task = task
        outgoing.mail = mail
        outgoing.scene = scene
        outgoing.since = since
        queue.append(outgoing)
    }

    /// Removes mail that was not sent yet from the queue, and returns the numbers of that mail. The messages behind it
    /// get new numbers. No number is used again, because an earlier connection of the delegate may have got it.
    ///
    /// - Parameter only: the number of the one piece of mail to remove; nil for all, if there is a delegate.
    func removeUnsentMail(only: Int64? = nil) -> [Int64] {
        guard let sent = delegate?.sent ?? only.map({ _ in 0 }) else { return [] }
        func isRemoved(_ outgoing: Outgoing) -> Bool {
            guard let mail = outgoing.mail, outgoing.id > sent else { return false }
            return only == nil || mail == only
        }
        guard let first = queue.firstIndex(where: isRemoved) else { return [] }
        let mail = queue[first...].filter(isRemoved).compactMap(\.mail)
        queue.removeAll(where: isRemoved)
        for index in first..<queue.count {
            lastID &+= 1
            queue[index].id = lastID
        }
        return mail
    }

    /// The number of the message whose answer the app's current transition waits for; 0 for none.
    var awaitedID: UInt32 { queue.last { $0.isAwaited }?.id ?? 0 }
}

extension AppRuntime {
    var channel: AppChannel? {
        get { slots[ChannelSlot.self] }
        set { slots[ChannelSlot.self] = newValue }
    }

    /// The mail that the app answered last.
    package var lastAnswered: AnsweredMail? {
        get { slots[LastAnsweredSlot.self] }
        set { slots[LastAnsweredSlot.self] = newValue }
    }
}

/// An app's answer to a piece of mail.
package struct AnsweredMail {
    /// The number of the mail.
    package let id: Int64
    /// The mail's key, or the token of the request that sent it.
    package let key: String?
    /// Why the app could not handle the mail, in the app's words; nil if it could.
    package let failure: String?
}

private enum ChannelSlot: Slot { typealias Value = AppChannel }
private enum LastAnsweredSlot: Slot { typealias Value = AnsweredMail }
