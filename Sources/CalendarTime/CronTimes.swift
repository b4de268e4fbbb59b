// SPDX-License-Identifier: Apache-2.0

/// Translates the five fields of crontab(5), or six with seconds first, into calendar expressions.
public enum CronTimes {
    /// The equivalent expressions, without a time zone; nil if the text is not a cron expression.
    ///
    /// There are two expressions if the text names both days of the month and weekdays: in cron it is enough that one
    /// of the two matches.
    public static func calendar(_ text: String) -> [String]? {
        guard text.utf8.count <= 1000, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) else { return nil }
        var fields = text.lowercased().split(separator: " ").map(String.init)
        if fields.count == 1, let name = names[fields[0]] { return [name] }
        var second = "00"
        if fields.count == 6 { second = values(fields.removeFirst(), 0...59) ?? "" }
        guard fields.count == 5, !second.isEmpty, let minute = values(fields[0], 0...59),
            let hour = values(fields[1], 0...23), let day = values(fields[2], 1...31),
            let month = values(fields[3], 1...12, named: months), let weekday = weekdays(fields[4])
        else { return nil }
        let time = "\(hour):\(minute)" + (second == "00" ? "" : ":\(second)")
        func expression(_ weekday: String, _ day: String) -> String {
            let date = day == "*" && month == "*" ? "" : "*-\(month)-\(day) "
            return (weekday.isEmpty ? "" : weekday + " ") + date + time
        }
        if weekday.isEmpty || day == "*" { return [expression(weekday, day)] }
        return [expression("", day), expression(weekday, "*")]
    }

    private static let names = [
        "@hourly": "hourly", "@daily": "daily", "@midnight": "daily", "@weekly": "Sun 00:00", "@monthly": "monthly",
        "@yearly": "yearly", "@annually": "yearly",
    ]
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    private static let shown = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

    /// One element of a list: start, end and step; nil if the text is invalid.
    private static func element(
        _ text: Substring,
        _ range: ClosedRange<Int>,
        _ names: [String]
    ) -> (start: Int, end: Int?, step: Int, isAll: Bool)? {
        func value(_ text: Substring) -> Int? {
            if let place = names.firstIndex(of: String(text)) { return place + range.lowerBound }
            guard let number = Int(text), range.contains(number), text.utf8.allSatisfy(isDigit) else { return nil }
            return number
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, parts.count <= 2 else { return nil }
        var step = 1
        if parts.count == 2 {
            guard let number = Int(parts[1]), (1...range.upperBound).contains(number) else { return nil }
            step = number
        }
        if first == "*" || first == "?" { return (range.lowerBound, nil, step, true) }
        let ends = first.split(separator: "-", omittingEmptySubsequences: false)
        guard let start = ends.first.flatMap(value), ends.count <= 2 else { return nil }
        if ends.count == 1 { return (start, parts.count == 2 ? nil : start, step, false) }
        guard let end = value(ends[1]), start <= end else { return nil }
        return (start, end, step, false)
    }

    private static func values(_ text: String, _ range: ClosedRange<Int>, named names: [String] = []) -> String? {
        func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        var list: [String] = []
        var isAny = false
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let (start, end, step, isAll) = element(part, range, names) else { return nil }
            if isAll, step == 1 { isAny = true }
            var value = padded(start)
            // A step beyond the end of the range never repeats.
            if step <= (end ?? range.upperBound) - start {
                if let end { value += "..\(padded(end))" }
                if step > 1 || end == nil { value += "/\(step)" }
            }
            list.append(value)
        }
        return isAny ? "*" : list.joined(separator: ",")
    }

    /// The weekdays, empty for all. 0 and 7 are Sunday, so that a range can end with Sunday.
    private static func weekdays(_ text: String) -> String? {
        var found: Set<Int> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let (start, end, step, isAll) = element(part, 0...7, days) else { return nil }
            for day in stride(from: start, through: end ?? (isAll ? 6 : 7), by: step) { found.insert(day % 7) }
        }
        guard found.count < 7 else { return "" }
        // Sorted from Monday; three or more days in a row become a range.
        var rest = found.map { ($0 + 6) % 7 }.sorted()[...]
        var list: [String] = []
        while let first = rest.first {
            let length = rest.enumerated().prefix { $0.element == first + $0.offset }.count
            let last = first + length - 1
            list += length > 2 ? ["\(shown[first])..\(shown[last])"] : (first...last).map { shown[$0] }
            rest = rest.dropFirst(length)
        }
        return list.joined(separator: ",")
    }
}
