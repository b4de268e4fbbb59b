// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import SystemBus

/// Follows the machine's sleep, and holds the inhibitor lock that delays it (type `delay`,
/// https://systemd.io/INHIBITOR_LOCKS).
final class SleepWatch {
    private unowned let manager: LoginManager
    private let connection: BusConnection
    private var slots: [BusSlot?] = []
    private var inhibition: BusSlot?
    /// The connection over which the lock comes.
    private var asking: BusConnection?

    /// Whether logind has answered.
    private(set) var isKnown = false
    /// Whether logind has announced sleep, and has not reported since that the machine has woken.
    private(set) var isAsleep = false
    /// The lock: while it is open the machine delays sleep, up to ``longestDelay``.
    private(set) var inhibitor: Descriptor?
    /// How long a lock delays sleep at most: logind's property `InhibitDelayMaxUSec`; nil until logind has answered.
    private(set) var longestDelay: Duration?
    /// Why this process does not delay sleep; nil if it does.
    private(set) var trouble: String?
    /// The time at which the machine will sleep even if this process does not release the lock.
    private(set) var sleepsAt: Duration?

    /// logind's default for the longest delay (InhibitDelayMaxSec= in logind.conf(5)).
    private static let usualDelay = Duration.seconds(5)
    /// The lock is released this long before logind's timeout, because logind reports each timeout in the journal.
    private static func margin(of delay: Duration) -> Duration { min(.milliseconds(250), delay / 10) }

    /// Queries and follows logind. `keeping`: the lock that an earlier instance of logind granted; it is kept until
    /// this instance has granted a new one.
    init(_ manager: LoginManager, _ connection: BusConnection, keeping inhibitor: Descriptor?) {
        self.manager = manager
        self.connection = connection
        self.inhibitor = inhibitor
        let signal = connection.subscribe(
            "type='signal',sender='\(LoginManager.service)',path='\(LoginManager.object)',"
                + "interface='\(LoginManager.manager)',member='PrepareForSleep'"
        ) { [weak self] message in
            guard let self, self.manager.isFromLogind(message), let begins = message.boolean() else { return }
            self.told(begins)
        }
        slots.append(signal)
        ask("InhibitDelayMaxUSec") { [weak self] message in
            self?.longestDelay = message?.variant("t") { $0.number() }.map { .microseconds(Int64(clamping: $0)) }
        }
        inhibit()
        ask("PreparingForSleep") { [weak self] message in
            guard let self else { return }
            self.isKnown = true
            self.told(message?.variant("b") { $0.boolean() } ?? self.isAsleep)
        }
    }

    private func ask(_ property: String, _ answer: @escaping (BusMessage?) -> Void) {
        let slot = connection.get(LoginManager.service, LoginManager.object, LoginManager.manager, property) {
            answer(try? $0.get())
        }
        slots.append(slot)
    }

    /// Stops following, but keeps the inhibitor lock.
    func stop() {
        slots = []
        (inhibition, asking) = (nil, nil)
    }

    private func told(_ begins: Bool) {
        let isNew = begins != isAsleep
        isAsleep = begins
        if !begins {
            sleepsAt = nil
            if inhibitor == nil, inhibition == nil { inhibit() }
        } else if isNew, inhibitor != nil {
            expectSleep()
        }
        manager.changed()
    }

    private func expectSleep() {
        let delay = longestDelay ?? Self.usualDelay
        sleepsAt = manager.loop.now + delay - Self.margin(of: delay)
    }

    private func inhibit() {
        let arguments: [BusArgument] = [
            .text("sleep"), .text("Torpor"), .text("Apps are taken to the background first"), .text("delay"),
        ]
        // The lock is a descriptor. It comes over a connection that ends with the answer, since any program on the bus
        // could send descriptors over a lasting one.
        do throws(BusError) {
            let made = try BusConnection(manager.loop, address: manager.address, takesDescriptors: true)
            made.onLost = { [weak self] error in self?.refused(error) }
            asking = made
        } catch {
            return refused(error)
        }
        inhibition = asking?.call(
            LoginManager.service,
            LoginManager.object,
            LoginManager.manager,
            "Inhibit",
            arguments
        ) { [weak self] answer in
            guard let self else { return }
            (self.inhibition, self.asking) = (nil, nil)
            switch answer {
            case .success(let message):
                self.inhibitor = message.descriptor()
                self.trouble = self.inhibitor == nil ? "logind gave no inhibitor lock: the machine does not wait" : nil
                // Sleep was announced before the lock came.
                guard self.isAsleep, self.inhibitor != nil, self.sleepsAt == nil else { break }
                self.expectSleep()
                self.manager.changed()
            case .failure(let error): self.refused(error)
            }
        }
    }

    private func refused(_ error: BusError) {
        (inhibition, asking) = (nil, nil)
        inhibitor = nil
        trouble =
            "the machine does not wait before it sleeps: \(error) (polkit allows it, by "
            + "org.freedesktop.login1.inhibit-delay-sleep; without polkit only root may)"
    }

    /// Releases the lock. The next lock is taken when the machine has woken.
    func letSleep() {
        guard isAsleep else { return }
        sleepsAt = nil
        (inhibition, asking) = (nil, nil)
        inhibitor = nil
    }
}
