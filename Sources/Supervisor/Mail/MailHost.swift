// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventSources
import Lifecycle
import Mailbox
import Store

/// What mailboxes need from other parts of the supervisor.
protocol MailHost: AnyObject {
    var store: Store { get }
    /// Calls `body` when everything that is stored has been loaded: at once, unless the supervisor has only just
    /// started.
    func whenLoaded(_ body: @escaping () -> Void)
    /// Wakes the app into the state that the event asks for, and delivers waiting mail.
    @discardableResult
    func wake(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome
    /// Wakes the app for mail that could not wake it before.
    func wake(_ app: AppRuntime, for mail: Mail) -> WakeOutcome
    /// Whether an app receives messages on its own socket.
    func hearsByChannel(_ app: AppID) -> Bool
    func channel(of app: AppRuntime) -> AppChannel
    /// Runs a command for the app, as its user. The completion gets nil, or a sentence if the command failed.
    func run(
        _ command: HookCommand,
        named name: String,
        of app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    ) -> HookRun
    /// Ends `run`, a command that runs for the app, by killing it if it is still running.
    func end(_ run: HookRun, of app: AppRuntime)
    /// Called when mail about changed settings is being delivered to the app, or was removed.
    func toldOfSettings(_ mail: Mail, _ app: AppRuntime)
    /// Sends the next message to the app's delegate, the process that receives its messages.
    func pumpMessages(to app: AppRuntime)
}
