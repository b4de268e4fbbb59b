// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Supervisor
import TorporAPI
import VarlinkServer

/// The pictures of apps.
extension ControlService {
    /// The picture that the configuration names; disks are waited for beside the loop.
    func sendIcon(of app: AppRuntime, _ reply: Reply) {
        guard let path = app.specification.presentation.icon else { return reply.send(AppIcon(trouble: nil).json) }
        // One reading for all who ask meanwhile.
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
