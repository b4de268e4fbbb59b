// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import WireText

/// An entry of `timers`: when a timer fires, and how it wakes the app.
public struct TimerSpecification: Sendable, Hashable {
    /// The timer's name, unique within the app.
    public var name = ""
    /// The calendar expressions of the times when the timer fires, in the syntax of systemd.time(7).
    public var calendar: [String] = []
    /// The interval at which the timer fires; `nil` for none. The first interval begins at the time of `after_boot` or
    /// `after_start`. Without these keys, it begins when the supervisor first starts the timer.
    public var every: Duration?
    /// How long after the machine's boot the timer fires; `nil` if the boot does not make it fire.
    public var afterBoot: Duration?
    /// How long after the supervisor's start the timer fires; `nil` if the start does not make it fire.
    public var afterStart: Duration?
    /// The value of `accuracy`: how late the timer may fire. torpord uses this time to let several timers fire
    /// together. `nil` for the default.
    public var writtenAccuracy: Duration?
    /// The upper bound of a random delay, which is added each time that the timer is due.
    public var randomDelay: Duration = .zero
    /// Whether a timer that has missed one or more of its times, for example while the machine was off, fires once
    /// afterwards.
    public var isPersistent = false
    /// How the timer wakes the app.
    public var wake: WakeManner = .background
    /// Data that the app gets in the timer's message.
    public var payload: ConfigurationValue?

    /// Creates a timer that never fires.
    public init() {}

    /// How late the timer may fire. The default is a minute, or a tenth of the shortest interval if that is less.
    public var accuracy: Duration {
        if let writtenAccuracy { return writtenAccuracy }
        let shortest = [every, afterBoot, afterStart].compactMap { $0 }.min()
        return shortest.map { min(.seconds(60), $0 / 10) } ?? .seconds(60)
    }

    /// The times of the timer as text, such as `Mon..Fri 08:00` or `every 1h`.
    public var text: String {
        var parts = calendar
        if let afterBoot { parts.append("\(Quantity.text(afterBoot)) after boot") }
        if let afterStart { parts.append("\(Quantity.text(afterStart)) after start") }
        if let every { parts.append("every \(Quantity.text(every))") }
        return parts.joined(separator: ", ")
    }
}

/// Readers of `timers`.
enum TimerReader {
    static let keys: [Key<TimerSpecification>] = [
        .value("name", \.name, name),
        .value("calendar", \.calendar, calendars),
        .optional("every", \.every, interval),
        .optional("after_boot", \.afterBoot, Read.duration),
        .optional("after_start", \.afterStart, Read.duration),
        .optional("accuracy", \.writtenAccuracy, Read.duration),
        .value("random_delay", \.randomDelay, Read.duration),
        .value("persistent", \.isPersistent, Read.boolean),
        .value("wake", \.wake) { Read.choice($0, $1) },
        .optional("payload", \.payload) { $1.plain },
    ]

    /// The shortest interval of a timer. A program that needs a shorter one should use a timer in its own process.
    private static let shortest = Duration.seconds(1)

    static func timers(_ context: Context, _ node: Node) -> [TimerSpecification]? {
        let timers = Read.elements(context, node, of: "tables", timer)
        guard var timers else { return nil }
        for index in timers.indices where timers[index].name.isEmpty { timers[index].name = "\(index + 1)" }
        return Read.unique(context, node, timers, by: \.name)
    }

    private static func timer(_ context: Context, _ node: Node) -> TimerSpecification? {
        guard case .table = node.value else { return context.expected("a table", node) }
        var timer = TimerSpecification()
        let found = Read.table(context, node, keys, into: &timer)
        let times = ["calendar", "every", "after_boot", "after_start"]
        if found.keys.allSatisfy({ !times.contains($0) }) {
            context.error(
                "does not say when to fire: write calendar = \"daily\", every = \"1h\", after_boot = \"5min\" or "
                    + "after_start = \"5min\"",
                at: node.position
            )
        }
        if timer.isPersistent, timer.calendar.isEmpty, timer.every == nil {
            found["persistent"]?.warning("does nothing without calendar or every")
        }
        return timer
    }

    /// The maximum length of a timer's name, in bytes.
    private static let longestName = 64

    static func name(_ context: Context, _ node: Node) -> String? {
        guard let name = Read.text(context, node) else { return nil }
        guard name.utf8.count <= longestName, name.utf8.allSatisfy({ $0.isNameByte || $0 == UInt8(ascii: ".") })
        else {
            context.error(
                "a name has from 1 to \(longestName) letters, digits, -, _ and .",
                at: node.position
            )
            return nil
        }
        return name
    }

    static func interval(_ context: Context, _ node: Node) -> Duration? {
        guard let interval = Read.duration(context, node) else { return nil }
        guard interval >= shortest else {
            context.error("must be at least \(quoted(Quantity.text(shortest)))", at: node.position)
            return nil
        }
        return interval
    }

    private static func calendars(_ context: Context, _ node: Node) -> [String]? {
        if case .string = node.value { return calendar(context, node).map { [$0] } }
        guard case .array = node.value else {
            return context.expected("a calendar expression like \"Mon..Fri 08:00\" or an array of them", node)
        }
        guard let texts = Read.elements(context, node, of: "calendar expressions", calendar) else { return nil }
        guard !texts.isEmpty else {
            context.error("must not be empty", at: node.position)
            return nil
        }
        return texts
    }

    private static func calendar(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        do throws(CalendarError) {
            _ = try CalendarExpression(text)
            return text
        } catch {
            context.error(error.description, at: node.position)
            return nil
        }
    }
}

extension TimerSpecification {
    /// The timer as one line, for diffs.
    var written: String {
        var words = [text]
        if let writtenAccuracy { words.append("accuracy \(Quantity.text(writtenAccuracy))") }
        if randomDelay > .zero { words.append("random_delay \(Quantity.text(randomDelay))") }
        if isPersistent { words.append("persistent") }
        if wake != .background { words.append("wake \(wake.rawValue)") }
        if let payload { words.append("payload \(Write.value(payload))") }
        return words.joined(separator: ", ")
    }
}
