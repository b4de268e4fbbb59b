// SPDX-License-Identifier: Apache-2.0

public import CalendarTime
public import TorporAPI
public import Varlink
import WireText

/// What alerts may contain.
public enum AlertRules {
    /// How many alerts of an app may be scheduled.
    public static let most = 64
    /// The most open alerts of an app; a further alert closes the oldest.
    public static let mostOpen = 64
    /// The longest title, in characters.
    static let longestTitle = 80
    /// The longest body, in bytes.
    static let longestBody = 1024
    /// The longest payload, in bytes of JSON.
    static let longestPayload = 8192
    /// How many buttons an alert may have.
    static let mostActions = 4
    /// The longest label of a button, in characters.
    static let longestLabel = 40
    /// The greatest badge.
    public static let greatestBadge: Int64 = 9999
    /// How far in the past a requested time may be. Also the minimum between two times of a repeated alert. In
    /// microseconds.
    static let grace: Int64 = 60_000_000
    /// The latest time, in microseconds since 1970: the year 2200.
    static let end: Int64 = 84_010 * 86_400_000_000
    /// The action that stands for choosing the alert itself instead of one of its buttons.
    public static let defaultAction = "default"

    /// Why a badge is invalid; nil if it is valid.
    public static func problem(badge: Int64) -> FieldError? {
        if (0...greatestBadge).contains(badge) { return nil }
        return FieldError(field: "badge", problem: "must be from 0 (none) to \(greatestBadge)")
    }

    static func isName(_ text: String, limit: Int = 64) -> Bool {
        (1...limit).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
                default: "-_.:@".utf8.contains(byte)
                }
            }
    }

    /// Why a text cannot be shown as one line, on screens and terminals; nil if it can.
    static func problem(ofLine text: String, limit: Int) -> String? {
        let scalars = text.unicodeScalars
        if scalars.contains(where: { $0.value == 10 || $0.value == 13 || $0.value == 0x85 || $0.value >> 1 == 0x1014 })
        {
            return "has several lines: write one line of 1 to \(limit) characters"
        }
        if let steering = scalars.first(where: \.steersTerminals) { return problem(of: steering) }
        guard scalars.contains(where: isVisible) else {
            return "has no visible character: write one line of 1 to \(limit) characters"
        }
        if text.count > limit { return "has \(text.count) characters: at most \(limit) are allowed" }
        return scalars.count > limit * 4 ? "has too many combining characters: leave them out" : nil
    }

    /// Why a text, which may have several lines, cannot be shown; nil if it can.
    static func problem(ofText text: String) -> String? {
        if text.utf8.count > longestBody {
            return "has \(text.utf8.count) bytes: at most \(longestBody) are allowed"
        }
        return text.unicodeScalars.first { $0 != "\n" && $0.steersTerminals }.map(problem(of:))
    }

    private static func problem(of scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        let code = "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        return "has the character \(code), which controls a terminal or changes the direction of text: leave it out"
    }

    /// Whether the character is visible on a screen.
    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        if properties.isWhitespace || properties.isDefaultIgnorableCodePoint { return false }
        switch properties.generalCategory {
        case .control, .format, .surrogate, .unassigned, .nonspacingMark, .enclosingMark: return false
        // U+2800, a Braille cell without dots, is invisible too.
        default: return scalar.value != 0x2800
        }
    }

    /// Replaces CR LF and CR by newlines, and tabs by spaces, since a body may be a program's output.
    static func plain(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 9 || $0 == 13 }) else { return text }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case 9: bytes.append(0x20)
            case 13:
                if rest.first == 10 { rest.removeFirst() }
                bytes.append(10)
            default: bytes.append(byte)
            }
        }
        return String(wire: bytes)
    }
}

/// The clocks and time zones that alerts are computed with.
public struct AlertClock {
    /// The wall clock, in microseconds since 1970.
    public var wall: Int64
    /// The time since boot in microseconds, including suspend.
    public var running: Int64
    /// The id of the boot.
    public var boot: String
    /// The machine's time zone.
    public var zone: TimeZone
    /// Finds a time zone by its name; nil if there is none.
    public var zoneNamed: (String) -> TimeZone?

    /// Memberwise initializer.
    public init(
        wall: Int64,
        running: Int64,
        boot: String,
        zone: TimeZone,
        zoneNamed: @escaping (String) -> TimeZone? = { SystemTimeZones().zone(named: $0) }
    ) {
        (self.wall, self.running, self.boot) = (wall, running, boot)
        (self.zone, self.zoneNamed) = (zone, zoneNamed)
    }

    /// Parses a calendar expression, by default in the machine's zone.
    func expression(_ text: String) throws(CalendarError) -> CalendarExpression {
        try CalendarExpression(text, zones: Zones(local: zone, named: zoneNamed))
    }

    private struct Zones: TimeZones {
        let local: TimeZone
        let named: (String) -> TimeZone?

        func zone(named name: String) -> TimeZone? { named(name) }
    }

    /// When an alert is due, in microseconds since 1970; nil for a repeated alert that never comes again.
    public func due(_ alert: Alert) -> Int64? {
        let moment: Int64? =
            switch alert.time {
            case .at(let moment): moment
            case .after(let wall, let running, let boot):
                boot == self.boot && !boot.isEmpty ? self.wall + (running - self.running) : wall
            case .local(let local, let zone): (zone.flatMap(zoneNamed) ?? self.zone).moment(ofLocal: local)
            case .calendar(let text): (try? expression(text))?.next(after: alert.base)
            }
        guard let moment else { return nil }
        return max(moment, alert.heldUntil ?? moment)
    }

    /// The last time of a repeated alert that is not in the future; nil for other alerts.
    func latest(_ alert: Alert) -> Int64? {
        guard case .calendar(let text) = alert.time else { return nil }
        return (try? expression(text))?.latest(notAfter: wall)
    }
}

extension Alert {
    /// Creates an alert from a request, after checking it.
    ///
    /// - Throws: ``FieldError`` that says which parameter is wrong and what to write.
    public init(
        _ request: ScheduleAlertRequest,
        number: Int64,
        app: String,
        clock: AlertClock
    ) throws(FieldError) {
        func wrong(_ field: String, _ problem: String) -> FieldError { FieldError(field: field, problem: problem) }
        let id = request.id ?? "alert-\(number)"
        guard AlertRules.isName(id) else {
            throw wrong("id", "must have 1 to 64 letters, digits and - _ . : @")
        }
        if let problem = AlertRules.problem(ofLine: request.title, limit: AlertRules.longestTitle) {
            throw wrong("title", problem)
        }
        let body = AlertRules.plain(request.body)
        if let problem = AlertRules.problem(ofText: body) { throw wrong("body", problem) }
        guard let urgency = Urgency(rawValue: request.urgency) else {
            throw wrong("urgency", "must be low, normal or critical")
        }
        if let sound = request.sound, !AlertRules.isName(sound) {
            throw wrong("sound", "must be a name of the sound theme, such as message-new-instant")
        }
        if let badge = request.badge, let problem = AlertRules.problem(badge: badge) { throw problem }
        guard request.actions.count <= AlertRules.mostActions else {
            throw wrong("actions", "must be at most \(AlertRules.mostActions)")
        }
        for (index, action) in request.actions.enumerated() {
            guard AlertRules.isName(action.id), action.id != AlertRules.defaultAction,
                !request.actions[..<index].contains(where: { $0.id == action.id })
            else {
                throw wrong(
                    "actions",
                    "must have different ids of 1 to 64 letters, digits and - _ . : @; ‘default’ is the alert itself"
                )
            }
            if let problem = AlertRules.problem(ofLine: action.label, limit: AlertRules.longestLabel) {
                throw wrong("actions", "must have good labels: that of \(action.id) \(problem)")
            }
        }
        guard request.payload.serialised().count <= AlertRules.longestPayload else {
            throw wrong("payload", "must have at most \(AlertRules.longestPayload) bytes")
        }
        self.init(
            number: number,
            app: app,
            id: id,
            title: request.title,
            time: try Self.time(request, clock),
            base: clock.wall
        )
        (self.body, self.urgency, sound, badge) = (body, urgency, request.sound, request.badge)
        (actions, url, payload, wake) = (request.actions, request.url, request.payload, request.wake)
        token = request.token?.value ?? 0
    }

    private static func time(_ request: ScheduleAlertRequest, _ clock: AlertClock) throws(FieldError) -> Time {
        let times = [request.at != nil, request.after != nil, request.calendar != nil].count { $0 }
        guard times <= 1 else {
            throw FieldError(field: "at", problem: "or after_ms or calendar: give one of the three")
        }
        if request.timeZone != nil, request.at == nil {
            throw FieldError(field: "time_zone", problem: "is for at: a calendar expression ends with its zone")
        }
        if let text = request.at { return try time(at: text, request.timeZone, clock) }
        if let text = request.calendar { return try time(calendar: text, clock) }
        guard let after = request.after else { return .at(clock.wall) }
        guard (0...AlertRules.end / 1_000).contains(after), clock.wall + after * 1_000 < AlertRules.end else {
            throw FieldError(field: "after_ms", problem: "must be 0 or more, and end before the year 2200")
        }
        return .after(
            wall: clock.wall + after * 1_000,
            running: clock.running + after * 1_000,
            boot: clock.boot
        )
    }

    private static func time(at text: String, _ zone: String?, _ clock: AlertClock) throws(FieldError) -> Time {
        if text.utf8.count <= 8, let ofDay = WrittenTimeOfDay(text) {
            let other = try named(zone, clock)
            let local = ofDay.next(notBefore: clock.wall, in: other ?? clock.zone)
            return .local(local, zone: other.flatMap { _ in zone })
        }
        guard text.utf8.count <= 64, let written = WrittenTime(text) else {
            let shape = /\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}.*/
            let what =
                text.isEmpty
                ? "is empty" : text.wholeMatch(of: shape) == nil ? "is no time" : "is a time that never comes"
            throw FieldError(
                field: "at",
                problem: "\(what): write a date and a time to the year 2199, such as 2026-03-29T14:30:00+02:00, or "
                    + "2026-03-29T14:30 for local time, or only 14:30 for the next time that clocks show it"
            )
        }
        let time: Time
        if let offset = written.offset {
            guard zone == nil else {
                throw FieldError(field: "time_zone", problem: "is for times without an offset, and at has one")
            }
            time = .at(written.local - Int64(offset) * 1_000_000)
        } else {
            time = .local(written.local, zone: try named(zone, clock).flatMap { _ in zone })
        }
        let probe = Alert(number: 0, app: "", id: "", title: "", time: time, base: 0)
        guard let due = clock.due(probe), due >= clock.wall - AlertRules.grace else {
            throw FieldError(
                field: "at",
                problem: "is \(text), which is over: choose a time to come, or leave it out for an alert that comes now"
            )
        }
        return time
    }

    /// The zone that a request names; nil for the machine's.
    private static func named(_ zone: String?, _ clock: AlertClock) throws(FieldError) -> TimeZone? {
        guard let zone, zone != "local" else { return nil }
        guard zone.utf8.count <= 64, let found = clock.zoneNamed(zone) else {
            throw FieldError(field: "time_zone", problem: "must be local, or a zone such as Europe/Berlin")
        }
        return found
    }

    private static func time(calendar text: String, _ clock: AlertClock) throws(FieldError) -> Time {
        guard text.utf8.count <= 256 else {
            throw FieldError(field: "calendar", problem: "must have at most 256 bytes")
        }
        let expression: CalendarExpression
        do throws(CalendarError) {
            expression = try clock.expression(text)
        } catch {
            throw FieldError(field: "calendar", problem: "is not a calendar expression: \(error)")
        }
        guard var last = expression.next(after: clock.wall) else {
            throw FieldError(field: "calendar", problem: "never comes")
        }
        // Checking three intervals suffices: an expression that matches several seconds of a minute does so in every
        // minute that it matches.
        for _ in 0..<3 {
            guard let next = expression.next(after: last) else { break }
            guard next - last >= AlertRules.grace else {
                throw FieldError(
                    field: "calendar",
                    problem: "comes more often than once a minute, which people cannot read"
                )
            }
            last = next
        }
        return .calendar(text)
    }
}

/// The hours in which only critical alerts are shown.
public enum QuietHours {
    /// When the quiet hours that contain `moment` end, in microseconds since 1970; nil if none contain it.
    ///
    /// - Parameter windows: the quiet hours, in minutes after midnight; an end before its start is on the next day.
    public static func end(_ windows: [(start: Int, end: Int)], at moment: Int64, in zone: TimeZone) -> Int64? {
        var latest: Int64?
        let time = LocalTime(moment, in: zone)
        let minute = time.hour * 60 + time.minute
        for window in windows {
            let isWithin =
                window.start < window.end
                ? (window.start..<window.end).contains(minute) : minute >= window.start || minute < window.end
            guard isWithin else { continue }
            let isTomorrow = minute >= window.end
            let local = Int64(time.dayNumber + (isTomorrow ? 1 : 0)) * 1440 + Int64(window.end)
            // If local clocks are set back, the computed end may lie before `moment`. In that case, use a second
            // after `moment`.
            let end = max(zone.moment(ofLocal: local * 60_000_000), moment + 1_000_000)
            latest = max(latest ?? end, end)
        }
        return latest
    }
}
