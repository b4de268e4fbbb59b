import Linux

/// Times and amounts, as people read them.
enum Times {
    /// Microseconds since 1970.
    static var now: Int64 { Clock.realtimeMicroseconds() }

    /// `2026-01-31T12:34:56Z`, the seconds and the Z optional, a space for the T allowed; UTC.
    static func parse(_ text: String) -> Int64? {
        var text = text[...]
        if text.hasSuffix("Z") { text = text.dropLast() }
        let halves = text.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "T" || $0 == " " }
        let date = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        guard date.count == 3, let year = date[0], let month = date[1], let day = date[2],
            (1970...9999).contains(year), (1...12).contains(month), (1...31).contains(day)
        else { return nil }
        var seconds = days(year, month, day) * 86_400
        if halves.count == 2 {
            let time = halves[1].split(separator: ":", omittingEmptySubsequences: false)
            guard (2...3).contains(time.count), let hour = Int64(time[0]), let minute = Int64(time[1]),
                (0..<24).contains(hour), (0..<60).contains(minute)
            else { return nil }
            seconds += hour * 3600 + minute * 60
            if time.count == 3 {
                guard let second = Double(time[2]), (0..<61).contains(second) else { return nil }
                return seconds * 1_000_000 + Int64(second * 1_000_000)
            }
        }
        return seconds * 1_000_000
    }

    /// Days since 1970-01-01 (the algorithm of Howard Hinnant's days_from_civil).
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// `850ms`, `3.2s`, `3m12s`, `5h07m`, `12d4h`.
    static func duration(seconds: Double) -> String {
        if seconds < 0 || !seconds.isFinite || seconds > 1e12 { return "-" }
        if seconds < 1 { return "\(Int(seconds * 1000))ms" }
        if seconds < 10 { return "\(tenths(seconds))s" }
        let whole = Int(seconds)
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        if whole < 60 { return "\(whole)s" }
        if whole < 3600 { return "\(whole / 60)m\(two(whole % 60))s" }
        if whole < 86_400 { return "\(whole / 3600)h\(two(whole % 3600 / 60))m" }
        return "\(whole / 86_400)d\(whole % 86_400 / 3600)h"
    }

    /// The same for milliseconds.
    static func duration(milliseconds: Int64) -> String { duration(seconds: Double(milliseconds) / 1000) }

    /// `512 B`, `12.3 MiB`.
    static func memory(bytes: Int64) -> String {
        var value = Double(bytes)
        if value < 1024 { return "\(bytes) B" }
        for unit in ["KiB", "MiB", "GiB", "TiB"] {
            value /= 1024
            if value < 1023.95 || unit == "TiB" { return "\(tenths(value)) \(unit)" }
        }
        return "\(bytes) B"
    }

    private static func tenths(_ value: Double) -> String {
        let scaled = Int((value * 10).rounded())
        return "\(scaled / 10).\(scaled % 10)"
    }

    /// `2026-01-31T12:34:56.789Z`.
    static func timestamp(_ microseconds: Int64) -> String { TimeStamp.string(microseconds: microseconds) }
}
