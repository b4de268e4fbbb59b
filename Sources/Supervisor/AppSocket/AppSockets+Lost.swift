// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import VarlinkServer

extension AppSockets {
    /// Makes the sockets again whose files were removed while no torpord was there. This is done in portions, because
    /// clients wait for a new torpord's first answers.
    func renewLost(from first: Int = 0) {
        loop.later { [weak self] in
            guard let self else { return }
            let rest = self.apps.all.dropFirst(first)
            for app in rest.prefix(Self.portion) {
                guard let server = app.server, !File.exists(server.path) else { continue }
                do throws(VarlinkServerError) {
                    try server.listenAgain()
                    self.supervisor.hold(DescriptorName.channel(app.name), server.listener.raw)
                } catch {
                    self.log.error("\(app.name) gets no messages: \(error)")
                }
            }
            if rest.count > Self.portion { self.renewLost(from: first + Self.portion) }
        }
    }

    private static let portion = 100
}
