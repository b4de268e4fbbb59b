// SPDX-License-Identifier: Apache-2.0

/// A number, a range or a repetition in a field of an expression.
struct CalendarComponent: Hashable, Sendable, Comparable {
    var start: Int
    /// The end of a range; nil for a single value, or if the component repeats to the end of its field.
    var stop: Int?
    /// The distance between values; 0 for a single value.
    var step = 0

    static func < (one: Self, other: Self) -> Bool {
        (one.start, one.stop ?? -1, one.step) < (other.start, other.stop ?? -1, other.step)
    }

    /// The last possible value, at most `limit`.
    private func last(limit: Int) -> Int {
        if let stop { return min(stop, limit) }
        return step > 0 ? limit : start
    }

    /// The first value from `value` on, at most `limit`.
    func next(from value: Int, limit: Int) -> Int? {
        var found = start
        if value > start {
            guard step > 0 else { return nil }
            found = start + (value - start + step - 1) / step * step
        }
        return found <= last(limit: limit) ? found : nil
    }

    /// The last value that is at most `value`, if there is one.
    func previous(from value: Int, limit: Int) -> Int? {
        let highest = min(value, last(limit: limit))
        guard highest >= start else { return nil }
        return step > 0 ? start + (highest - start) / step * step : start
    }
}

/// The allowed values of one field of an expression, such as the hour.
struct CalendarField: Hashable, Sendable {
    /// Sorted, without duplicates; empty if any value is allowed.
    var components: [CalendarComponent]

    /// A field that allows any value.
    static let any = CalendarField(components: [])
    /// A field that allows only these values.
    static func only(_ values: Int...) -> CalendarField {
        CalendarField(components: values.map { CalendarComponent(start: $0) })
    }

    /// The fields of an expression. Each has its own range of values.
    enum Place {
        case year
        case month
        case day
        /// The day of the month, counted from the month's end.
        case dayFromEnd
        case hour
        case minute
        /// The second, in microseconds.
        case second

        /// The allowed range.
        var range: ClosedRange<Int> {
            switch self {
            case .year: 1970...2199
            case .month: 1...12
            case .day: 1...31
            // Every month has at least 28 days.
            case .dayFromEnd: 1...28
            case .hour: 0...23
            case .minute: 0...59
            case .second: 0...(60 * Int(microsecondsPerSecond) - 1)
            }
        }

        /// The field's name in error messages.
        var name: String {
            switch self {
            case .year: "year"
            case .month: "month"
            case .day: "day"
            case .dayFromEnd: "day from the end of the month"
            case .hour: "hour"
            case .minute: "minute"
            case .second: "second"
            }
        }
    }

    /// Brings the field into normal form: ranges end at a value that they contain, ranges of one value become single
    /// values, and components are sorted without duplicates.
    mutating func normalise() {
        for index in components.indices {
            guard let stop = components[index].stop else { continue }
            let (start, step) = (components[index].start, components[index].step)
            if stop > start { components[index].stop = stop - (stop - start) % step }
            if components[index].stop == start { components[index] = CalendarComponent(start: start) }
        }
        components.sort()
        var last: CalendarComponent?
        components.removeAll { component in
            defer { last = component }
            return component == last
        }
    }

    /// What is wrong with the field, as a sentence; nil if nothing. Call after `normalise`.
    func problem(at place: Place) -> String? {
        let range = place.range
        for component in components {
            for value in [component.start, component.stop ?? component.start] where !range.contains(value) {
                let shown = place == .second ? Self.seconds(value, width: 1) : "\(value)"
                let highest = place == .second ? "below 60" : "at most \(range.upperBound)"
                return "\(shown) is not a valid \(place.name): it must be at least \(range.lowerBound) and \(highest)"
            }
            let written = Self.text(component, width: 1, isSecond: place == .second)
            if let stop = component.stop, stop < component.start {
                return "\(written) runs backwards: write the lower \(place.name) first"
            }
            // If days are counted from the end of the month, repetitions run towards that end.
            let room = place == .dayFromEnd ? component.start - range.lowerBound : range.upperBound - component.start
            if component.stop == nil, component.step > room {
                return "\(written) never repeats: there is no \(place.name) that far on"
            }
        }
        return nil
    }

    /// The values as a bit mask.
    func mask(limit: Int) -> UInt64 {
        if components.isEmpty { return ~0 >> UInt64(63 - limit) }
        var mask: UInt64 = 0
        for component in components {
            var value = component.next(from: 0, limit: limit)
            while let one = value {
                mask |= 1 << UInt64(one)
                value = component.step > 0 ? component.next(from: one + 1, limit: limit) : nil
            }
        }
        return mask
    }

    /// The first value from `value` on, at most `limit`.
    func next(from value: Int, limit: Int) -> Int? {
        if components.isEmpty { return value <= limit ? value : nil }
        var found: Int?
        for component in components {
            guard let one = component.next(from: value, limit: limit) else { continue }
            if one == value { return one }
            found = min(found ?? one, one)
        }
        return found
    }

    /// The last value that is at most `value`.
    func previous(from value: Int, limit: Int) -> Int? {
        if components.isEmpty { return value }
        var found: Int?
        for component in components {
            guard let one = component.previous(from: value, limit: limit) else { continue }
            if one == value { return one }
            found = max(found ?? one, one)
        }
        return found
    }

    // MARK: As text

    /// The text as `systemd-analyze calendar` prints it.
    func text(at place: Place) -> String {
        if components.isEmpty { return "*" }
        let width = place == .year ? 4 : 2
        // If `*` is one of the components, it covers the others, so print only `*`.
        if place == .second, components.contains(Self.everySecond) { return "*" }
        return components.map { Self.text($0, width: width, isSecond: place == .second) }.joined(separator: ",")
    }

    /// In the field of seconds, `*` means every whole second.
    static let everySecond = CalendarComponent(start: 0, step: Int(microsecondsPerSecond))

    private static func text(_ component: CalendarComponent, width: Int, isSecond: Bool) -> String {
        func number(_ value: Int, width: Int) -> String {
            isSecond ? seconds(value, width: width) : padded(value, width: width)
        }
        var text = number(component.start, width: width)
        if let stop = component.stop { text += ".." + number(stop, width: width) }
        let isPlain = component.stop != nil && component.step == (isSecond ? Int(microsecondsPerSecond) : 1)
        if component.step > 0, !isPlain { text += "/" + number(component.step, width: 1) }
        return text
    }

    private static func seconds(_ microseconds: Int, width: Int) -> String {
        let (whole, fraction) = microseconds.quotientAndRemainder(dividingBy: Int(microsecondsPerSecond))
        return padded(whole, width: width) + (fraction == 0 ? "" : "." + padded(fraction, width: 6))
    }

    private static func padded(_ value: Int, width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
