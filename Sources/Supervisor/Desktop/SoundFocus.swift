// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopProtocol
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes
import WireText

/// Interrupts apps in the foreground that play, while another program has a call, an alarm or a notification to play
/// (`interrupt_on = ["audio"]`).
///
/// An app is told by willResignActive, and by didBecomeActive when the last such stream has ended.
package final class SoundFocus: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    private unowned let sound: SessionSound
    /// Interrupted apps by name, with the incarnation; of them the next torpord must know.
    private var interrupted: [String: UInt64] = [:] {
        didSet { if interrupted != oldValue { keep() } }
    }
    private lazy var kept = PersistedBytes(supervisor, log, named: DescriptorName.soundFocus, most: 64 << 10)
    private var timer: TimerSource?
    /// When the last stream that comes first was seen, while apps are interrupted.
    private var seenAt = Duration.zero
    /// What streams were known last, until it is reported otherwise.
    private var streams: [DesktopSound] = [] {
        didSet {
            let earlier = cgroups
            cgroups = [:]
            for stream in streams { cgroups[stream] = earlier[stream] ?? (try? ProcFS.cgroup(stream.pid)) ?? "" }
        }
    }
    /// The cgroup of each stream's process, read once: an app with a cgroup of its own keeps its processes there.
    private var cgroups: [DesktopSound: String] = [:]
    /// Whether this torpord has heard of streams.
    private var isKnown = false
    /// Whether a look at all apps is queued.
    private var isDue = false

    /// Roles of streams that come before all others (PipeWire's `media.role`).
    static let roles: Set<String> = ["Alarm", "Communication", "Notification"]
    /// How long no such stream must run before apps go on: some programs make a new one for each piece, and pw-dump may
    /// have to be started again.
    static let pause = Duration.seconds(2)

    init(_ supervisor: Supervisor, _ sound: SessionSound) {
        self.supervisor = supervisor
        self.sound = sound
    }

    private var isOn: Bool { supervisor.configuration.supervisor.interruptOn.contains(.audio) }

    /// Before the keeper closes what no room has taken.
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
        // While sound is not followed, nothing is known of it.
        (streams, isKnown) = ([], false)
    }

    /// Streams have begun or ended, or it is no longer known which there are.
    func soundChanged() {
        guard isOn || !interrupted.isEmpty else { return }
        // While the helper is started again, all is as it was.
        if let now = sound.streams {
            (streams, isKnown) = (now, true)
        } else if sound.problem != nil {
            (streams, isKnown) = ([], true)
        }
        look()
    }

    /// The apps that play, other than by streams that come first.
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

    /// The next run of the app is interrupted by itself.
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
                // Its own call does not interrupt it.
                guard let stream = first.first(where: { !isOf(app, $0) }) else { continue }
                begin(app, stream)
            }
        }
        // An earlier torpord's interruptions last until it is known who plays.
        guard !interrupted.isEmpty, isKnown || !isOn else { return }
        // An app whose own calls alone are left goes on with the others.
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
                // A later run was not interrupted, and one that was sent away since is interrupted no longer.
                guard UInt64(machine.incarnation) == incarnation, machine.interruptions > 0 else { continue }
                try? self.request(.interrupt(begin: false), of: id)
            }
            // Last: if torpord is killed before, the next one ends the interruptions.
            self.interrupted = [:]
        }
    }
}
