// SPDX-License-Identifier: Apache-2.0

/// Why a text is not a valid duration or size.
public struct QuantityError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A sentence that says what to write instead.
    public var description: String

    package init(description: String) { self.description = description }
}

/// Parses and formats durations and sizes in the syntax of the configuration and the command line.
public enum Quantity {
    /// The longest valid duration, 100 years.
    public static let longest = Duration.seconds(36_500 * 86_400)

    private static let units: [(name: String, microseconds: Int64)] = [
        ("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("m", 60_000_000), ("s", 1_000_000),
        ("ms", 1_000), ("us", 1), ("µs", 1), ("μs", 1),
    ]

    /// Words that users often write instead of a unit's name, by unit.
    private static let unitWords: [(unit: String, words: Set<String>)] = [
        ("d", ["d", "day", "days"]), ("h", ["h", "hr", "hrs", "hour", "hours"]),
        ("min", ["min", "mins", "minute", "minutes"]), ("s", ["s", "sec", "secs", "second", "seconds"]),
        ("ms", ["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"]),
        ("us", ["us", "usec", "usecs", "micros", "microsecond", "microseconds"]),
    ]

    /// Parses a duration such as `"500ms"`, `"1.5s"`, `"2min"` or `"1h30m"`. Larger units must come before smaller
    /// ones.
    public static func duration(_ text: String) throws(QuantityError) -> Duration {
        var rest = Substring(text)
        var total: Int64 = 0
        var smallest = Int64.max
        guard !rest.isEmpty else { throw QuantityError(description: "it is empty: write \"5s\"") }
        while !rest.isEmpty {
            let (whole, fraction) = try number(&rest, of: text, example: "\"5s\"")
            let name = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(name.count)
            rest = rest.drop { $0 == " " }
            guard !name.isEmpty || rest.isEmpty else {
                throw QuantityError(description: "\(text.inQuotes) is not a duration: write \"5s\" or \"1h30m\"")
            }
            guard !name.isEmpty else {
                throw QuantityError(description: "\(text.inQuotes) has no unit: write \((text + "s").inQuotes)")
            }
            guard let unit = units.first(where: { $0.name == name }) else {
                let meant = unitWords.first { $0.words.contains(name.lowercased()) }?.unit
                throw QuantityError(
                    description: "\(String(name).inQuotes) is not a unit of time: "
                        + (meant.map { "write \($0.inQuotes); there are us, ms, s, min, h and d" }
                            ?? "use us, ms, s, min, h or d")
                )
            }
            guard unit.microseconds < smallest else {
                throw QuantityError(
                    description: "the units of \(text.inQuotes) must go from the largest to the smallest"
                )
            }
            smallest = unit.microseconds
            let (product, overflow) = whole.multipliedReportingOverflow(by: unit.microseconds)
            let part = Int64(Double(unit.microseconds) * fraction)
            let (sum, overflowOfSum) = total.addingReportingOverflow(product)
            let (next, overflowOfPart) = sum.addingReportingOverflow(part)
            guard !overflow, !overflowOfSum, !overflowOfPart, .microseconds(next) <= longest else {
                throw QuantityError(description: "\(text.inQuotes) is too long: the longest is \"36500d\"")
            }
            total = next
        }
        return .microseconds(total)
    }

    /// Parses a duration and returns whole milliseconds; nil if the text is not valid.
    public static func milliseconds(_ text: String) -> Int64? {
        guard let parts = (try? duration(text))?.components else { return nil }
        return parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000
    }

    private static let sizeUnits: [String: UInt64] = [
        "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "KiB": 1 << 10, "MiB": 1 << 20,
        "GiB": 1 << 30, "TiB": 1 << 40, "KB": 1_000, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000,
        "TB": 1_000_000_000_000,
    ]

    /// Parses a size and returns bytes: `"64MiB"` and `"512K"` are binary units, `"1GB"` is decimal, `"100B"` is in
    /// bytes.
    public static func size(_ text: String) throws(QuantityError) -> UInt64 {
        var rest = Substring(text)
        guard !rest.isEmpty else { throw QuantityError(description: "it is empty: write \"64MiB\"") }
        let (whole, fraction) = try number(&rest, of: text, example: "\"64MiB\"")
        guard !rest.isEmpty else {
            throw QuantityError(
                description: "\(text.inQuotes) has no unit: write \((text + "B").inQuotes) or \"64MiB\""
            )
        }
        guard let unit = sizeUnits[String(rest)] else {
            let meant = ["B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "K", "M", "G", "T"]
                .first { $0.lowercased() == rest.lowercased() }
            throw QuantityError(
                description: "\(String(rest).inQuotes) is not a unit of size: "
                    + (meant.map { "write \($0.inQuotes); there are " } ?? "use ")
                    + "B, KiB, MiB, GiB and TiB (or K, M, G and T), KB, MB, GB and TB"
            )
        }
        let (product, overflow) = UInt64(whole).multipliedReportingOverflow(by: unit)
        guard !overflow, product <= UInt64(Int64.max) - unit else {
            throw QuantityError(description: "\(text.inQuotes) is too large")
        }
        return product + UInt64(Double(unit) * fraction)
    }

    /// Formats a duration in whole microseconds, such that `duration(_:)` can parse the text.
    public static func text(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        var microseconds = attoseconds / 1_000_000_000_000
        var left = seconds
        var text = ""
        for (name, length) in [("d", Int64(86_400)), ("h", 3_600), ("min", 60), ("s", 1)] where left >= length {
            text += "\(left / length)\(name)"
            left %= length
        }
        if microseconds >= 1_000 {
            text += "\(microseconds / 1_000)ms"
            microseconds %= 1_000
        }
        if microseconds > 0 { text += "\(microseconds)us" }
        return text.isEmpty ? "0s" : text
    }

    private static func number(
        _ rest: inout Substring,
        of text: String,
        example: String
    ) throws(QuantityError) -> (whole: Int64, fraction: Double) {
        let digits = rest.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard !digits.isEmpty else {
            let isNegative = rest.hasPrefix("-")
            throw QuantityError(
                description:
                    "\(text.inQuotes) \(isNegative ? "is negative" : "is not a number with a unit"): write \(example)"
            )
        }
        guard let whole = Int64(String(Substring(digits))) else {
            throw QuantityError(description: "\(text.inQuotes) is too large")
        }
        rest = rest[digits.endIndex...]
        guard rest.utf8.first == UInt8(ascii: ".") else { return (whole, 0) }
        let decimals = rest.utf8.dropFirst().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard !decimals.isEmpty, let fraction = Double("0." + String(Substring(decimals.prefix(18)))) else {
            throw QuantityError(description: "\(text.inQuotes) is not a number with a unit: write \(example)")
        }
        rest = rest[decimals.endIndex...]
        return (whole, fraction)
    }
}
