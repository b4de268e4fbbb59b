// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox

/// Wakes an app with the background mode `voip` for 10 s whenever the app has been suspended for its `keep_alive`
/// interval. The app can then send something on its connections, before a router (NAT) drops idle ones.
final class KeepAlive: EventRoom, EventSource {
    unowned(unsafe) let wakes: Wakes
    /// When each suspended app will be woken.
    private var due: [AppID: Duration] = [:]
    private var timer: TimerSource?

    /// The background time that an app gets to keep its connections open, as in iOS.
    static let time = Duration.seconds(10)
    /// When one app is woken, torpord also wakes the apps that are due soon, so that the processor wakes up less often.
    /// An app is woken early by at most this time, and by at most a tenth of its interval.
    private static let slack = Duration.seconds(60)

    init(_ wakes: Wakes) { self.wakes = wakes }

    func configure() {
        due = [:]
        for app in apps { touched(app) }
    }

    func added(_ app: AppRuntime) { touched(app) }

    func concerns(_ app: AppRuntime) -> Bool { Self.period(of: app) != nil || due[app.id] != nil }

    func touched(_ app: AppRuntime) {
        let period = Self.period(of: app)
        if period == nil, due[app.id] == nil { return }
        let machine = machine(app)
        guard let period, machine.state == .suspended, machine.transition == nil else {
            if due.removeValue(forKey: app.id) != nil { arm() }
            return
        }
        // The interval begins with the app's suspension, even if an earlier torpord suspended the app.
        let since = app.times.since.4
        let at = since == StateTimes.never ? now + period : .microseconds(since) + period
        guard due[app.id] == nil else { return }
        due[app.id] = at
        arm()
    }

    func forget(_ app: AppRuntime) {
        if due.removeValue(forKey: app.id) != nil { arm() }
    }

    private static func period(of app: AppRuntime) -> Duration? {
        app.specification.keepAlive.flatMap { app.specification.backgroundModes.contains(.voip) ? $0 : nil }
    }

    private func arm() {
        guard let next = due.values.min() else {
            timer = nil
            return
        }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.fire() } }
        if timer?.deadline != next { timer?.arm(at: next) }
    }

    private func fire() {
        timer?.disarm()
        let now = now
        for (id, at) in due.sorted(by: { $0.value < $1.value }) {
            let app = apps[id]
            let period = Self.period(of: app) ?? .zero
            guard at <= now + min(Self.slack, period / 10) else { continue }
            wake(app, period, now)
        }
        arm()
    }

    private func wake(_ app: AppRuntime, _ period: Duration, _ now: Duration) {
        let text = "its keep_alive of \(Quantity.text(period))"
        let mail = MailDraft(
            topic: "keep-alive",
            message: Message.didReceiveEvent.rawValue,
            coalescing: .latest,
            sender: "torpor"
        )
        let event = WakeEvent(
            .connection,
            "keep-alive",
            text,
            wake: Wake(time: Self.time),
            mail: hears(app, .didReceiveEvent) ? mail : nil,
            at: now
        )
        // If the app cannot be woken now, try again after one interval. If the app is woken, its next suspension sets a
        // new time.
        due[app.id] = now + period
        if case .heldBack(_, let until) = wakes.tell(event, for: app), let until { due[app.id] = until }
    }
}
