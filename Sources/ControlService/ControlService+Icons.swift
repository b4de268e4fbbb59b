// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopEntries
import Engine
import Linux
import Supervisor
import TorporAPI
import VarlinkServer

/// Requests for the icons of apps.
extension ControlService {
    /// Sends the app's icon. A background thread reads the icon's file, because the event loop must not wait for a
    /// disk.
    ///
    /// - Parameter variant: the name of the icon to send. If the app has no icon of this name, its default icon is
    ///   sent.
    func sendIcon(of app: AppRuntime, _ variant: String?, _ reply: Reply) {
        let presentation = app.specification.presentation
        guard let path = variant.flatMap({ presentation.icons[$0] }) ?? presentation.icon else {
            return reply.send(AppIcon(trouble: nil).json)
        }
        // If the same icon is being read for another request, share the result.
        let isBeingRead = app.iconReplies?[path] != nil
        app.iconReplies = (app.iconReplies ?? [:]).merging([path: [reply]]) { $0 + $1 }
        guard !isBeingRead else { return }
        let names = Account.Names(app.specification)
        iconReads.ask({ AppIcon(file: path, of: names).json }) { icon in
            let waiting = app.iconReplies?.removeValue(forKey: path) ?? []
            for reply in waiting { reply.send(icon) }
        }
    }

    /// The apps that a desktop shows. Scenes are not among them, because there may be many, and they come and go.
    var desktopApps: [DesktopApp] {
        apps.filter { $0.specification.scene == nil }.map { DesktopApp($0.specification) }
    }
}

extension AppRuntime {
    /// The clients that wait until an icon of the app was read, by the icon's path.
    var iconReplies: [String: [Reply]]? {
        get { slots[IconRepliesSlot.self] }
        set { slots[IconRepliesSlot.self] = newValue }
    }
}

private enum IconRepliesSlot: Slot { typealias Value = [String: [Reply]] }
