// SPDX-License-Identifier: Apache-2.0

package import Engine
import Lifecycle
import Mailbox
package import TorporAPI

extension Supervisor {
    /// The message that the app works on although no transition waits for the answer; nil if there is none.
    package func work(of app: AppRuntime) -> WorkInfo? {
        let machine = coordinator.machine(app.id)
        guard let outgoing = appSockets.messageInWork(of: app), let time = machine.messageTime(now: loop.now) else {
            return nil
        }
        let mail = outgoing.mail.flatMap { mailboxes.mail($0, of: app) }
        let due = machine.messageDue
        return WorkInfo(
            name: outgoing.message.rawValue,
            message: mail?.id,
            topic: mail?.draft.topic,
            attempt: mail.map { Int64($0.attempts) },
            workingMilliseconds: time.microseconds / 1000,
            remainingMilliseconds: due.map { max(0, ($0 - time).microseconds / 1000) },
            isLate: due == nil && machine.rules.messageDeadline != nil
        )
    }
}
