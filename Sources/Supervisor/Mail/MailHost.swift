// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventSources
import Lifecycle
import Mailbox
import Store

/// What mailboxes need of other rooms, and no more.
protocol MailHost: AnyObject {
    /// What outlives the boot.
    var store: Store { get }
    /// Wakes the app as the event says, and tells it what waits.
    @discardableResult
    func wake(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome
    /// What waits for the app was to wake it, and could not yet.
    func wake(_ app: AppRuntime, for mail: Mail)
    /// Whether an app is told on its own socket.
    func hearsByChannel(_ app: AppID) -> Bool
    /// What an app is told on its socket, and says there.
    func channel(of app: AppRuntime) -> AppChannel
    /// Runs a command for the app, as its user. The completion gets a sentence when the command failed.
    func run(
        _ command: HookCommand,
        named name: String,
        of app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    ) -> HookRun
    /// Ends the command, if it still runs.
    func end(_ run: HookRun, of app: AppRuntime)
    /// The app is being told of settings that changed, or nobody is told of them any more.
    func toldOfSettings(_ mail: Mail, _ app: AppRuntime)
    /// Whoever hears the app's messages is told the next one.
    func pumpMessages(to app: AppRuntime)
}
