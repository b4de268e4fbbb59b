// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopProtocol
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes
import WireText

/// Interrupts apps in the foreground that play sound, while another program plays sound that takes precedence: a call,
/// an alarm or a notification (`interrupt_on = ["audio"]`).
///
/// An interrupted app gets willResignActive, and gets didBecomeActive when the last stream that takes precedence has
/// ended.
package final class SoundFocus: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    private unowned let sound: SessionSound
    /// The interrupted apps by name, each with its incarnation. The next torpord must know them, so they are
    /// persisted.
    private var interrupted: [String: UInt64] = [:] {
        didSet { if interrupted != oldValue { keep() } }
    }
    private lazy var kept = PersistedBytes(supervisor, log, named: DescriptorName.soundFocus, most: 64 << 10)
    private var timer: TimerSource?
    /// The time at which a stream that takes precedence was last seen, while apps are interrupted.
    private var seenAt = Duration.zero
    /// The streams that were last known.
    private var streams: [DesktopSound] = [] {
        didSet {
            let earlier = cgroups
            cgroups = [:]
            for stream in streams { cgroups[stream] = earlier[stream] ?? (try? ProcFS.cgroup(stream.pid)) ?? "" }
        }
    }
    /// The cgroup of each stream's process, read once. It tells which app the process belongs to, if the app has a
    /// cgroup of its own.
    private var cgroups: [DesktopSound: String] = [:]
    /// Whether this torpord knows by now which streams run, or that streams cannot be followed.
    private var isKnown = false
    /// Whether a check of all apps is scheduled already.
    private var isDue = false

    /// Roles of streams that take precedence over all others (PipeWire's `media.role`).
    static let roles: Set<String> = ["Alarm", "Communication", "Notification"]
    /// Interruptions end this long after the last stream that takes precedence. The wait is needed because some
    /// programs make a new stream for each piece of sound, and because pw-dump may have to be started again.
    static let pause = Duration.seconds(2)

    init(_ supervisor: Supervisor, _ sound: SessionSound) {
        self.supervisor = supervisor
        self.sound = sound
    }

    private var isOn: Bool { supervisor.configuration.supervisor.interruptOn.contains(.audio) }

    /// Claims inherited descriptors. Must be called before torpord closes those that no part of the supervisor has
    /// claimed.
    func takeOver() {
        guard let bytes = kept.bytes, !bytes.isEmpty else { return }
        let fields = bytes.split(separator: 0).map { String(wire: $0) }
        var earlier: [String: UInt64] = [:]
        for index in stride(from: 0, to: fields.count - 1, by: 2) { earlier[fields[index]] = UInt64(fields[index + 1]) }
        interrupted = earlier
    }

    private func keep() {
        let pairs = interrupted.sorted { $0.key < $1.key }
        kept.keep(pairs.flatMap { Array($0.key.utf8) + [0] + Array("\($0.value)".utf8) + [0] })
    }

    /// Applies the configuration in force.
    func configure() {
        sound.isFollowedForFocus = isOn
        if isOn { return soundChanged() }
        look()
        // While sound is not followed, the streams are unknown.
        (streams, isKnown) = ([], false)
    }

    /// Called when streams have begun or ended, or are no longer known.
    func soundChanged() {
        guard isOn || !interrupted.isEmpty else { return }
        // The streams are nil while the helper is being started again: treat them as unchanged until then.
        if let now = sound.streams {
            (streams, isKnown) = (now, true)
        } else if sound.problem != nil {
            (streams, isKnown) = ([], true)
        }
        look()
    }

    /// Whether the app plays sound, not counting streams that take precedence.
    func plays(_ app: AppRuntime) -> Bool {
        let own = streams.filter { !$0.isRecording && !Self.comesFirst($0) }
        return own.contains { isOf(app, $0) }
    }

    private func isOf(_ app: AppRuntime, _ stream: DesktopSound) -> Bool {
        app.run.tree?.contains(stream.pid, in: cgroups[stream]) ?? false
    }

    private static func comesFirst(_ stream: DesktopSound) -> Bool { stream.role.map(roles.contains) ?? false }

    package func touched(_ apps: [AppRuntime]) {
        guard isOn, !isDue, streams.contains(where: Self.comesFirst) else { return }
        for app in apps where app.run.tree != nil && interrupted[app.name] == nil && isInFront(app) {
            isDue = true
            return loop.later { [weak self] in
                self?.isDue = false
                self?.look()
            }
        }
    }

    /// Forgets the interruption, which ends together with the incarnation (one run of the app) that was interrupted.
    package func ended(_ app: AppRuntime, _ ending: Ending) { interrupted[app.name] = nil }

    package func forget(_ app: AppRuntime) { interrupted[app.name] = nil }

    private func isInFront(_ app: AppRuntime) -> Bool {
        let machine = coordinator.machine(app.id)
        return machine.goal == .active && machine.state == .active && !machine.isCovered && machine.interruptions == 0
    }

    private func look() {
        guard !isEnding else { return }
        let first = isOn ? streams.filter(Self.comesFirst) : []
        if !first.isEmpty {
            seenAt = now
            for app in apps where interrupted[app.name] == nil && isInFront(app) && plays(app) {
                // An app is not interrupted by a stream of its own, such as its own call.
                guard let stream = first.first(where: { !isOf(app, $0) }) else { continue }
                begin(app, stream)
            }
        }
        // Interruptions that an earlier torpord began last until the streams are known.
        guard !interrupted.isEmpty, isKnown || !isOn else { return }
        // If all remaining streams that take precedence belong to the interrupted apps themselves, the interruptions
        // end.
        let foreign = first.contains { stream in
            interrupted.keys.contains { name in
                coordinator.id(of: name).map { !isOf(apps[$0], stream) } ?? false
            }
        }
        guard !foreign else {
            timer?.disarm()
            return
        }
        let left = seenAt + Self.pause - now
        guard left <= .zero || !isOn else {
            if timer == nil {
                timer = try? loop.timer { [weak self] in
                    self?.timer?.disarm()
                    self?.look()
                }
            }
            timer?.arm(after: left)
            return
        }
        end()
    }

    private func begin(_ app: AppRuntime, _ stream: DesktopSound) {
        let (id, name) = (app.id, app.name)
        let other = apps.first { isOf($0, stream) }?.name ?? "process \(stream.pid)"
        let text = "is interrupted by sound of \(other) (\(stream.role ?? ""))"
        interrupted[name] = UInt64(coordinator.machine(id).incarnation)
        supervisor.uninterrupted { [weak self] in
            guard let self else { return }
            do throws(RequestError) {
                try self.request(.interrupt(begin: true), of: id)
                self.note(self.apps[id], .asked, text: text, reason: "sound")
            } catch {
                self.interrupted[name] = nil
            }
        }
    }

    private func end() {
        timer?.disarm()
        supervisor.uninterrupted { [weak self] in
            guard let self else { return }
            let all = self.interrupted
            for (name, incarnation) in all.sorted(by: { $0.key < $1.key }) {
                guard let id = self.coordinator.id(of: name) else { continue }
                let machine = self.coordinator.machine(id)
                // Skip later runs of the app, which were not interrupted, and apps that have left the foreground, which
                // are no longer interrupted.
                guard UInt64(machine.incarnation) == incarnation, machine.interruptions > 0 else { continue }
                try? self.request(.interrupt(begin: false), of: id)
            }
            // Clear this last: if torpord is killed before, the next torpord ends the interruptions.
            self.interrupted = [:]
        }
    }
}
