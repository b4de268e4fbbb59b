// SPDX-License-Identifier: Apache-2.0

import CSystemd
package import EventLoop
import Linux

/// Receives messages meant for other clients (`org.freedesktop.DBus.Monitoring`), which the bus permits to root and
/// its own user. The connection can do nothing else.
package final class BusMonitor {
    /// Why no messages are received; nil if they are, or if that is not known yet.
    package private(set) var trouble: String?
    /// Whether the bus permits monitoring.
    package private(set) var isLooking = false

    private var connection: BusConnection?
    private var slots: [BusSlot?] = []

    /// Starts to monitor messages that match one of the rules. It does not retry when the bus is lost.
    package init(_ loop: EventLoop, address: String, rules: [String], _ handler: @escaping (BusMessage) -> Void) {
        do throws(BusError) {
            let made = try BusConnection(loop, address: address, monitors: true, takesDescriptors: true)
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
