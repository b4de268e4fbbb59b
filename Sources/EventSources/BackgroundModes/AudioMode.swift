// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The background mode `audio`: an app is not suspended while one of its processes plays or records sound.
///
/// The kernel does not report new streams, so torpord checks for streams at three times: when an app with the mode
/// enters the background, before torpord suspends such an app, and once a second while such an app plays in the
/// background. A silent app in the background causes no further checks. A sound server reports its streams itself,
/// while any app with the mode is in the background.
package final class AudioMode: EventRoom, EventSource {
    package unowned(unsafe) let wakes: Wakes
    private let sources: [any SoundSource]
    /// The apps with the mode `audio` that are in the background: torpord checks their streams.
    private var followed: [AppID: Following] = [:] {
        didSet {
            guard followed.isEmpty != oldValue.isEmpty else { return }
            for source in sources { source.isFollowed = !followed.isEmpty }
        }
    }
    private var timer: TimerSource?

    private struct Following {
        /// When a stream of the app was last seen running.
        var heardAt: Duration?
        /// Suspends the app if the check in progress finds no stream of the app; nil if no suspension waits for that
        /// check.
        var stop: (() -> Void)?
    }

    /// The interval of the checks while an app plays in the background.
    package static let interval = Duration.seconds(1)
    /// How long after its last stream an app still counts as playing, because a player may close its stream between two
    /// pieces.
    package static let pause = Duration.seconds(3)

    package init(_ wakes: Wakes) {
        self.wakes = wakes
        let kernel = KernelSound(wakes.loop, root: wakes.kernelFiles)
        sources = [kernel] + (wakes.host.sessionSound.map { [$0] } ?? [])
        for source in sources {
            source.onChange = { [weak self] in
                if let self, !self.followed.isEmpty { self.look() }
            }
        }
    }

    private func machine(_ id: AppID) -> AppMachine { coordinator.machine(id) }

    private func hasMode(_ app: AppRuntime) -> Bool { app.specification.backgroundModes.contains(.audio) }

    package func configure() { for app in apps { touched(app) } }

    package func added(_ app: AppRuntime) { touched(app) }

    package func concerns(_ app: AppRuntime) -> Bool {
        hasMode(app) || followed[app.id] != nil || coordinator[app.id].modes.contains(.audio)
    }

    package func touched(_ app: AppRuntime) {
        let id = app.id
        guard hasMode(app) else {
            if followed[id] != nil || coordinator[id].modes.contains(.audio) { drop(id) }
            return
        }
        let machine = machine(id)
        guard machine.state == .background, app.run.tree != nil, !machine.isForced else {
            if followed[id] != nil || machine.modes.contains(.audio) { drop(id) }
            return
        }
        guard followed[id] == nil else { return }
        followed[id] = Following()
        look()
    }

    package func forget(_ app: AppRuntime) { followed[app.id] = nil }

    private func drop(_ id: AppID) {
        let stop = followed.removeValue(forKey: id)?.stop
        if machine(id).modes.contains(.audio) { set(id, false) }
        stop?()
    }

    private func set(_ id: AppID, _ isTrue: Bool) {
        try? request(.mode(.audio, isTrue: isTrue), of: id)
    }

    /// Called before the app is suspended: checks its streams once more, and calls `stop` unless the app plays. If the
    /// app needs no check, calls `stop` at once.
    package func look(before app: AppRuntime, _ stop: @escaping () -> Void) {
        let id = app.id
        guard hasMode(app), !coordinator[id].isForced else { return stop() }
        followed[id, default: Following()].stop = stop
        ask { [weak self] playing in self?.found(playing, askedBefore: id) }
    }

    // MARK: Looking

    private func look() { ask { [weak self] playing in self?.found(playing) } }

    /// Asks all sound sources which processes play or record.
    private func ask(_ answer: @escaping ([Int32]) -> Void) {
        var (playing, missing): ([Int32], Int) = ([], sources.count)
        for source in sources {
            source.look {
                playing += $0
                missing -= 1
                if missing == 0 { answer(playing) }
            }
        }
    }

    /// - Parameters:
    ///   - playing: processes that play or record.
    ///   - stopping: the app that is about to be suspended, unless it plays.
    private func found(_ playing: [Int32], askedBefore stopping: AppID? = nil) {
        let now = now
        // Read each process's cgroup once, not once per app.
        let players = Set(playing).map { (pid: $0, cgroup: (try? ProcFS.cgroup($0)) ?? nil) }
        for (id, following) in followed.sorted(by: { $0.key < $1.key }) {
            // Handling another app earlier in this loop may have removed this app from `followed`.
            guard followed[id] != nil, let tree = apps[id].run.tree else { continue }
            if id == stopping { followed[id]?.stop = nil }
            if players.contains(where: { tree.contains($0.pid, in: $0.cgroup) }) {
                followed[id]?.stop = nil
                followed[id]?.heardAt = now
                set(id, true)
                continue
            }
            // The lifecycle core counts the app as playing, but this torpord has seen no stream of the app: an earlier
            // torpord saw one. Count that stream as seen now.
            guard let heardAt = following.heardAt ?? (machine(id).modes.contains(.audio) ? now : nil) else {
                if id == stopping { following.stop?() }
                continue
            }
            followed[id]?.heardAt = heardAt
            if now - heardAt >= Self.pause {
                followed[id]?.heardAt = nil
                set(id, false)
                if id == stopping { following.stop?() }
            }
        }
        arm()
    }

    private func arm() {
        guard followed.values.contains(where: { $0.heardAt != nil }) else {
            timer = nil
            return
        }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.lookAgain() } }
        timer?.arm(after: Self.interval)
    }

    private func lookAgain() {
        timer?.disarm()
        look()
    }
}
