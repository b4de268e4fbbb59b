// SPDX-License-Identifier: Apache-2.0

/// Writes sizes, durations and percentages in so few characters that they fit into a column of the list.
public enum Amounts {
    /// A number of bytes as text, such as `512B`, `9.8K`, `123M` or `1.5G`: at most five columns.
    public static func memory(_ bytes: Int64) -> String {
        guard bytes >= 1000 else { return "\(max(0, bytes))B" }
        var value = Double(bytes)
        for unit in ["K", "M", "G", "T", "P"] {
            value /= 1024
            if value < 9.95 { return tenths(value) + unit }
            if value < 999.5 || unit == "P" { return "\(Int(min(value, 9999).rounded()))\(unit)" }
        }
        return "?"
    }

    /// A duration as text, such as `850ms`, `3.2s`, `42s`, `3m12s`, `5h07m`, `12d4h` or `120d`: at most six columns.
    public static func duration(seconds: Double) -> String {
        guard seconds.isFinite, seconds >= 0, seconds < 1e11 else { return "-" }
        if seconds < 1 { return "\(Int(seconds * 1000))ms" }
        if seconds < 9.95 { return tenths(seconds) + "s" }
        let whole = Int(seconds)
        if whole < 60 { return "\(whole)s" }
        if whole < 3600 { return "\(whole / 60)m\(two(whole % 60))s" }
        if whole < 86_400 { return "\(whole / 3600)h\(two(whole % 3600 / 60))m" }
        if whole < 100 * 86_400 { return "\(whole / 86_400)d\(whole % 86_400 / 3600)h" }
        return "\(min(99_999, whole / 86_400))d"
    }

    /// The time passed, in at most four columns: `now`, `12s`, `5m`, `3h`, `12d`.
    public static func age(seconds: Double) -> String {
        guard seconds.isFinite, seconds < 8.6e10 else { return "-" }
        if seconds < 1 { return "now" }
        let whole = Int(seconds)
        if whole < 60 { return "\(whole)s" }
        if whole < 3600 { return "\(whole / 60)m" }
        if whole < 86_400 { return "\(whole / 3600)h" }
        return "\(min(999, whole / 86_400))d"
    }

    /// A percentage as text, such as `0.0`, `9.9` or `100`.
    public static func percent(_ value: Double) -> String {
        guard value.isFinite, value >= 0 else { return "-" }
        return value < 99.95 ? tenths(value) : "\(Int(min(value, 99_999).rounded()))"
    }

    static func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }

    private static func tenths(_ value: Double) -> String {
        let scaled = Int((value * 10).rounded())
        return "\(scaled / 10).\(scaled % 10)"
    }
}
