// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Supervisor
import TorporAPI
import VarlinkServer

/// The icons of apps.
extension ControlService {
    /// Sends the icon that the configuration names; it is read outside of the loop, which must not wait for a disk.
    func sendIcon(of app: AppRuntime, _ reply: Reply) {
        guard let path = app.specification.presentation.icon else { return reply.send(AppIcon(trouble: nil).json) }
        // Requests that come during a read share its result.
        guard app.iconReplies == nil else {
            app.iconReplies?.append(reply)
            return
        }
        app.iconReplies = [reply]
        let names = Account.Names(app.specification)
        iconReads.ask({ AppIcon(file: path, of: names).json }) { icon in
            let waiting = app.iconReplies ?? []
            app.iconReplies = nil
            for reply in waiting { reply.send(icon) }
        }
    }
}
