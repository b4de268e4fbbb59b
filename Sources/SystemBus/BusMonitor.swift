// SPDX-License-Identifier: Apache-2.0

import CSystemd
package import EventLoop
import Linux

/// Sees messages on the bus that are meant for others (`org.freedesktop.DBus.Monitoring`), which the bus allows root and its
/// own user. The connection can do nothing else.
package final class BusMonitor {
    /// Why nothing is seen; nil when all is well, or nobody knows yet.
    package private(set) var trouble: String?
    /// The bus lets it look.
    package private(set) var isLooking = false

    private var connection: BusConnection?
    private var slots: [BusSlot?] = []

    /// Begins to look for messages that fit one of the rules. It is not tried again when the bus is lost.
    package init(_ loop: EventLoop, address: String, rules: [String], _ handler: @escaping (BusMessage) -> Void) {
        do throws(BusError) {
            let made = try BusConnection(loop, address: address, monitors: true)
            made.onLost = { [weak self] error in
                self?.isLooking = false
                self?.trouble = self?.trouble ?? error.description
            }
            connection = made
            slots = [
                made.filter(handler),
                made.call(
                    "org.freedesktop.DBus",
                    "/org/freedesktop/DBus",
                    "org.freedesktop.DBus.Monitoring",
                    "BecomeMonitor",
                    [.texts(rules), .number(0)]
                ) { [weak self] answer in
                    switch answer {
                    case .success: self?.isLooking = true
                    case .failure(let error): self?.trouble = error.description
                    }
                },
            ]
        } catch {
            trouble = error.description
        }
    }
}
