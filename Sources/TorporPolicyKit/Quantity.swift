// SPDX-License-Identifier: Apache-2.0

/// Durations, sizes and shares as the configuration writes them.
public enum Quantity {
    /// The longest duration that is accepted, 100 years.
    public static let longest = Duration.seconds(36_500 * 86_400)

    private static let times: [(name: String, microseconds: Int64)] = [
        ("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("m", 60_000_000), ("s", 1_000_000),
        ("ms", 1_000), ("us", 1), ("µs", 1), ("μs", 1),
    ]

    private static let sizes: [(name: String, bytes: UInt64)] = [
        ("B", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40), ("KiB", 1 << 10), ("MiB", 1 << 20),
        ("GiB", 1 << 30), ("TiB", 1 << 40), ("KB", 1_000), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ]

    /// Parses a duration such as `"500ms"`, `"1.5s"` or `"1h30min"`, with units from the largest to the smallest. nil
    /// if the text is not valid, or the duration is longer than ``longest``.
    public static func duration(_ text: String) -> Duration? {
        var rest = Substring(text)
        var total: Int64 = 0
        var smallest = Int64.max
        guard !rest.isEmpty else { return nil }
        while !rest.isEmpty {
            guard let (whole, fraction) = number(&rest) else { return nil }
            let name = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(name.count).drop { $0 == " " }
            guard let unit = times.first(where: { $0.name == name })?.microseconds, unit < smallest else { return nil }
            smallest = unit
            let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
            let (sum, overflowOfSum) = total.addingReportingOverflow(product)
            let (next, overflowOfPart) = sum.addingReportingOverflow(Int64(Double(unit) * fraction))
            guard !overflow, !overflowOfSum, !overflowOfPart, .microseconds(next) <= longest else { return nil }
            total = next
        }
        return .microseconds(total)
    }

    /// Parses `"64MiB"`, `"512K"` (both binary), `"1GB"` (decimal), `"100B"` as bytes; nil if the text is not valid.
    public static func size(_ text: String) -> UInt64? {
        var rest = Substring(text)
        guard let (whole, fraction) = number(&rest), let unit = sizes.first(where: { $0.name == rest })?.bytes
        else { return nil }
        let (product, overflow) = UInt64(whole).multipliedReportingOverflow(by: unit)
        guard !overflow, product <= UInt64(Int64.max) - unit else { return nil }
        return product + UInt64(Double(unit) * fraction)
    }

    /// Parses `"2%"`, `"0.5%"` as 0.02 and 0.005; nil if the text is not valid.
    public static func share(_ text: String) -> Double? {
        var rest = Substring(text)
        guard let (whole, fraction) = number(&rest), rest == "%" else { return nil }
        return (Double(whole) + fraction) / 100
    }

    /// Writes a size in its largest binary unit: `64 MiB`, `1.5 GiB`.
    public static func text(_ bytes: UInt64) -> String {
        let units: [(String, UInt64)] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        for (name, size) in units where bytes >= size {
            let tenths = bytes / (size / 10 == 0 ? 1 : size / 10)
            return bytes < 10 * size && tenths % 10 != 0
                ? "\(tenths / 10).\(tenths % 10) \(name)" : "\(bytes / size) \(name)"
        }
        return "\(bytes) B"
    }

    /// Writes a fraction as a percentage: `2%`.
    static func percent(_ share: Double) -> String {
        let percent = share * 100
        return percent == percent.rounded() ? "\(Int(percent))%" : "\(percent)%"
    }

    private static func number(_ rest: inout Substring) -> (whole: Int64, fraction: Double)? {
        let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        let digits = rest.utf8.prefix(while: isDigit)
        guard let whole = Int64(String(Substring(digits))) else { return nil }
        rest = rest[digits.endIndex...]
        guard rest.utf8.first == UInt8(ascii: ".") else { return (whole, 0) }
        let decimals = rest.utf8.dropFirst().prefix(while: isDigit)
        guard !decimals.isEmpty, let fraction = Double("0." + String(Substring(decimals.prefix(18)))) else {
            return nil
        }
        rest = rest[decimals.endIndex...]
        return (whole, fraction)
    }
}
