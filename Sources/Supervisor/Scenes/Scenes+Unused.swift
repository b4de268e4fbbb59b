// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux

/// Discards sessions whose template no longer exists, and sessions that were unused for longer than `discard_after`.
extension Scenes {
    /// A session is kept for this time after its template was removed.
    package static let keptWithoutTemplate = Duration.seconds(30 * 86_400)
    private static let longestWait = Duration.seconds(86_400)

    /// When an unused session is discarded, in microseconds since 1970; nil if it is never discarded, or if the scene
    /// is in use now.
    func end(of session: SceneSession, _ app: AppRuntime) -> Int64? {
        if let gone = session.templateGoneAt { return gone + Self.keptWithoutTemplate.microseconds }
        guard let time = app.specification.scenes?.discardAfter, !isLive(app), !machine(app).isWaitingToLaunch else {
            return nil
        }
        return session.usedAt + time.microseconds
    }

    func armTimer() {
        guard isStarted else { return }
        followClock()
        let mayEnd =
            templates.contains { $0.scenes?.discardAfter != nil } || inner.owners.contains(where: Self.discardsInner)
            || roster.sessions.values.contains { $0.templateGoneAt != nil && !$0.isDiscarded }
        guard mayEnd else {
            timer = nil
            return
        }
        let ends =
            scenes(of: nil).compactMap { app in
                roster[app.name].flatMap { $0.isDiscarded ? nil : end(of: $0, app) }
            } + innerEnds.map(\.end)
        timer = nil
        if let next = ends.min() { armTimer(for: next) }
    }

    private static func discardsInner(_ app: AppRuntime) -> Bool { app.specification.innerScenes?.discardAfter != nil }

    /// The sessions of inner scenes that have a time at which they are discarded if they stay unused, and that time in
    /// microseconds since 1970.
    var innerEnds: [(session: SceneSession, end: Int64)] {
        inner.owners.filter(Self.discardsInner).flatMap { app in
            inner.sessions(of: app).compactMap { session in inner.end(of: session, app).map { (session, $0) } }
        }
    }

    /// Arms the timer for the time `end`, in microseconds since 1970, unless it is armed for an earlier time.
    func armTimer(for end: Int64) {
        // Wait at most a day, because the wall clock may be set during the wait.
        let wait = min(Self.longestWait, max(.milliseconds(1), .microseconds(end - Clock.realtimeMicroseconds())))
        if let armed = timer?.deadline, armed <= now + wait { return }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.discardUnused() } }
        timer?.arm(after: wait)
    }

    /// If the wall clock was set, starts the time again after which unused sessions are discarded, so that no session
    /// is discarded because of the new time.
    private func followClock() {
        let (boot, wallClock) = (Clock.boot(), Clock.realtimeMicroseconds())
        defer { lastLook = (boot, wallClock) }
        guard let last = lastLook else { return }
        let step = wallClock - last.wallClock - (boot - last.boot).microseconds
        guard abs(step) > Self.largestStep.microseconds else { return }
        log.notice("the clock was set: the time after which unused sessions are discarded starts again")
        for app in scenes(of: nil) where !machine(app).isAlive {
            used(app, isWritten: true)
            if roster[app.name]?.templateGoneAt != nil { change(app.name) { $0.templateGoneAt = wallClock } }
        }
        for entry in innerEnds { used(entry.session.app, isWritten: true) }
    }

    private static let largestStep = Duration.seconds(3600)

    private func discardUnused() {
        followClock()
        let wallClock = Clock.realtimeMicroseconds()
        let due = scenes(of: nil).filter { app in
            guard let session = roster[app.name], !session.isDiscarded else { return false }
            return end(of: session, app).map { $0 <= wallClock } ?? false
        }
        let dueInside = innerEnds.filter { $0.end <= wallClock }.map(\.session)
        if !dueInside.isEmpty, isStarted { inner.discard(dueInside) { [weak self] in self?.armTimer() } }
        guard !due.isEmpty, isStarted else { return armTimer() }
        discard(due) { [weak self] in
            guard let self else { return }
            for app in due where app.isListed {
                let why =
                    app.specification.lacksTemplate ? "its template was gone for 30 days" : "it was unused for too long"
                note(app, .sceneDiscarded, text: "is discarded: \(why)")
                end(app)
            }
            armTimer()
        }
    }
}
