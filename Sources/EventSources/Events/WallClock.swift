// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Schedules
import Varlink

/// Detects when the clock is set, the time zone changes, or a new day or daylight saving time begins. Then adjusts
/// timers and sends `significantTimeChange` to apps.
///
/// While no app needs this, torpord watches nothing. Otherwise torpord wakes up once a day, and at each such change.
final class WallClock: EventRoom, EventSource {
    unowned(unsafe) let wakes: Wakes
    private let timers: Timers
    private var watch: ClockWatch?
    private var source: IOSource?
    private var zoneWatch: Inotify?
    private var zoneSource: IOSource?
    private var dayTimer: TimerSource?
    private var isFollowing = false
    /// Called when the clock was set, the machine has slept, or the time zone has changed. `isElsewhere`: whether the
    /// time zone has changed.
    var onChange: ((_ isElsewhere: Bool) -> Void)?
    /// The wall clock minus the clock that cannot be set, in microseconds, at the last check.
    private var difference: Int64 = 0
    /// The day's number and the offset from UTC in seconds, both at the last check.
    private var day = 0
    private var offset = 0

    /// A change of `difference` by less than this, in microseconds, does not mean that the clock was set, because the
    /// two clocks are read one after the other.
    private static let jitter: Int64 = 1_000
    /// A step of the clock by less than this, in microseconds, is not reported to apps, because a time service often
    /// steps the clock by a fraction of a second.
    private static let significant: Int64 = 1_000_000
    private static let directory = "/etc"

    init(_ wakes: Wakes, _ timers: Timers) {
        self.wakes = wakes
        self.timers = timers
    }

    // MARK: Whether to look

    func configure() {
        // For timers with intervals, the clock must be watched too: the timers' time continues while the machine
        // sleeps, but the event loop's clock stops.
        let hasTimers = apps.contains { app in
            !app.specification.timers.isEmpty || app.specification.backgroundModes.contains(.fetch)
        }
        if hasTimers || apps.contains(where: mayHear) { follow() }
        armDay()
    }

    func added(_ app: AppRuntime) {
        let hasTimers = !app.specification.timers.isEmpty || app.specification.backgroundModes.contains(.fetch)
        if hasTimers { configure() } else { touched(app) }
    }

    func concerns(_ app: AppRuntime) -> Bool { app.specification.notifications.contains(.clock) }

    func touched(_ app: AppRuntime) {
        guard dayTimer?.deadline == nil, mayHear(app) else { return }
        follow()
        armDay()
    }

    func forget(_ app: AppRuntime) {}

    private func mayHear(_ app: AppRuntime) -> Bool {
        app.specification.notifications.contains(.clock) && hears(app, .significantTimeChange)
    }

    func follow() {
        guard !isFollowing else { return }
        isFollowing = true
        let now = host.clocks
        difference = Self.difference(now)
        // The time zone was not watched until now, so it may have changed.
        let zone = SystemTimeZones().local
        if zone != timers.zone { timers.zoneChanged(to: zone) }
        remember(LocalTime(now.wall, in: zone), now)
        do throws(Errno) {
            let made = try ClockWatch()
            source = try loop.watch(made.descriptor.raw, .readable) { [weak self] _ in self?.clockRang() }
            watch = consume made
        } catch {
            log.warning("apps are not notified when the clock is set: \(error)")
        }
        guard ThisProcess.environment("TZ") == nil else { return }
        do throws(Errno) {
            let made = try Inotify()
            // A program that sets the time zone creates a symlink with a temporary name and renames it to `localtime`.
            // The temporary name then disappears, so watch `/etc` for the removal of names.
            try made.watchRemovals(of: Self.directory)
            Self.watchFile(made)
            zoneSource = try loop.watch(made.descriptor.raw, .readable) { [weak self] _ in self?.etcRang() }
            zoneWatch = made
        } catch {
            log.warning("apps are not notified when the time zone changes: \(Self.directory): \(error)")
        }
    }

    /// Watches writes to `/etc/localtime` too, in case this is a file and not a symlink.
    private static func watchFile(_ inotify: Inotify) {
        _ = try? Inotify.watch(inotify.descriptor.raw, directory + "/localtime", .writtenAndClosed)
    }

    private static func difference(_ now: ClockPair) -> Int64 { now.wall - now.running.microseconds }

    private func remember(_ local: LocalTime, _ now: ClockPair) {
        day = local.dayNumber
        offset = timers.zone.offset(at: now.wall / 1_000_000)
    }

    // MARK: What happens

    func clockRang() {
        do throws(Errno) {
            try watch?.again()
        } catch {
            source = nil
            log.warning("apps are no longer notified when the clock is set: \(error)")
        }
        let now = host.clocks
        let difference = Self.difference(now)
        let step = difference - self.difference
        self.difference = difference
        guard abs(step) > Self.jitter else {
            // The clock was not set: the machine has slept. The event loop's clock stood still during that time, so
            // recalculate the timers.
            timers.clockWasSet(by: .zero)
            onChange?(false)
            return look(step: 0)
        }
        let text = "the clock was set \(step > 0 ? "forward" : "back") by \(Double(abs(step) / 1_000) / 1_000) s"
        note(.clockChanged, text: text)
        timers.clockWasSet(by: .microseconds(step))
        onChange?(false)
        look(step: step)
    }

    private func etcRang() {
        if let zoneWatch {
            zoneWatch.drain()
            Self.watchFile(zoneWatch)
        }
        look(step: 0)
    }

    /// Compares the clock, the time zone and the day with their last values, and notifies apps of changes. `step`: by
    /// how many microseconds the clock was set.
    private func look(step: Int64) {
        let now = host.clocks
        var payload = JSONObject()
        var news: [String] = []
        if abs(step) >= Self.significant {
            payload["clock"] = true
            news.append("the clock was set")
        }
        let zone = SystemTimeZones().local
        let isElsewhere = zone != timers.zone
        if isElsewhere {
            timers.zoneChanged(to: zone)
            onChange?(true)
            let name = Self.zoneName ?? zone.abbreviation(at: now.wall / 1_000_000)
            payload["time_zone"] = .string(name)
            news.append("the time zone is \(name)")
            note(.clockChanged, text: "the time zone is \(name) now")
        }
        let local = LocalTime(now.wall, in: zone)
        let offset = zone.offset(at: now.wall / 1_000_000)
        if offset != self.offset {
            payload["utc_offset_s"] = .int(Int64(offset))
            if !isElsewhere { news.append("summer time begins or ends") }
        }
        if local.dayNumber != day {
            payload["day"] = .string(Self.date(local))
            news.append("it is another day")
        }
        remember(local, now)
        if !news.isEmpty {
            let mail = MailDraft(
                topic: "clock",
                message: Message.significantTimeChange.rawValue,
                payload: .object(payload),
                coalescing: .merge,
                sender: "clock"
            )
            wakes.notifications.tell(.clock, mail, news.joined(separator: ", "))
        }
        armDay()
    }

    /// The time zone's name, such as `Europe/Berlin`, from TZ or `/etc/localtime`; nil if unknown.
    private static var zoneName: String? {
        if let name = ThisProcess.environment("TZ") { return name }
        guard let target = try? File.readLink(directory + "/localtime") else { return nil }
        let parts = target.split(separator: "/")
        guard let root = parts.lastIndex(of: "zoneinfo"), root + 1 < parts.count else { return nil }
        return parts[(root + 1)...].joined(separator: "/")
    }

    private static func date(_ local: LocalTime) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(local.year)-\(two(local.month))-\(two(local.day))"
    }

    // MARK: The next day

    /// If an app subscribes to `clock`, schedules a check for when the next day begins or the offset from UTC changes.
    private func armDay() {
        guard isFollowing, apps.contains(where: mayHear) else {
            dayTimer?.disarm()
            return
        }
        if dayTimer == nil { dayTimer = try? loop.timer { [weak self] in self?.dayBegins() } }
        let now = host.clocks
        dayTimer?.arm(
            at: loop.now + .microseconds(max(0, Self.change(after: now.wall, in: timers.zone) - now.wall))
        )
    }

    private func dayBegins() {
        dayTimer?.disarm()
        look(step: 0)
    }

    /// When the day or the offset from UTC changes next, in microseconds since 1970. If both change within 26 hours, at
    /// different times, the result is one of the two times.
    static func change(after moment: Int64, in zone: TimeZone) -> Int64 {
        func look(_ second: Int64) -> (day: Int, offset: Int) {
            (LocalTime(second * 1_000_000, in: zone).dayNumber, zone.offset(at: second))
        }
        var before = moment / 1_000_000
        let here = look(before)
        var after = before + 26 * 3_600
        while after - before > 1 {
            let middle = before + (after - before) / 2
            if look(middle) == here { before = middle } else { after = middle }
        }
        return after * 1_000_000
    }
}
