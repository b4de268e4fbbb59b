// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopEntries
import Engine
import Linux
import Supervisor
import TorporAPI
import VarlinkServer

/// The icons of apps.
extension ControlService {
    /// Sends the icon that the configuration names; it is read outside of the loop, which must not wait for a disk.
    ///
    /// - Parameter variant: of its icons, the one to send if there is one of that name.
    func sendIcon(of app: AppRuntime, _ variant: String?, _ reply: Reply) {
        let presentation = app.specification.presentation
        guard let path = variant.flatMap({ presentation.icons[$0] }) ?? presentation.icon else {
            return reply.send(AppIcon(trouble: nil).json)
        }
        // Requests that come during a read share its result.
        let isBeingRead = app.iconReplies?[path] != nil
        app.iconReplies = (app.iconReplies ?? [:]).merging([path: [reply]]) { $0 + $1 }
        guard !isBeingRead else { return }
        let names = Account.Names(app.specification)
        iconReads.ask({ AppIcon(file: path, of: names).json }) { icon in
            let waiting = app.iconReplies?.removeValue(forKey: path) ?? []
            for reply in waiting { reply.send(icon) }
        }
    }

    /// What a desktop shows of the apps. Scenes are left out: there may be many, which come and go.
    var desktopApps: [DesktopApp] {
        apps.filter { $0.specification.scene == nil }.map { DesktopApp($0.specification) }
    }
}
