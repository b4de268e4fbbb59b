// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux

/// Shortens ownerships that are limited in time (`torpor own --for`) by the time that the machine sleeps. The event
/// loop's clock stands still during a sleep, but the ownership must not last longer, because another machine may own
/// the app after that.
final class OwnershipClock: ShellRoom {
    unowned(unsafe) let supervisor: Supervisor
    private var slept = OwnershipClock.sleep
    private var watch: ClockWatch?
    private var source: IOSource?

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// How long the machine has slept since its boot.
    private static var sleep: Duration { Clock.boot() - Clock.monotonic() }

    /// Begins to follow the machine's sleep, if an app is owned for a time.
    func begin() {
        guard source == nil, apps.contains(where: { coordinator.machine($0.id).ownedUntil != nil }) else { return }
        slept = Self.sleep
        guard let made = try? ClockWatch() else { return }
        source = try? loop.watch(made.descriptor.raw, .readable) { [weak self] _ in self?.clockHasJumped() }
        watch = consume made
    }

    private func clockHasJumped() {
        do throws(Errno) {
            try watch?.again()
        } catch {
            source = nil
            watch = nil
        }
        look()
    }

    /// Shortens ownerships by the time that the machine has slept since the last call.
    private func look() {
        let now = Self.sleep
        let more = now - slept
        // The boot clock and the monotonic clock are read one after the other, so a tiny difference does not mean that
        // the machine has slept.
        guard more > .milliseconds(1) else { return }
        slept = now
        for app in apps where coordinator.machine(app.id).ownedUntil != nil {
            coordinator.shortenOwnership(of: app.id, by: more)
        }
        engine.settle()
    }
}
