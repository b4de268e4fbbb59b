// SPDX-License-Identifier: Apache-2.0

import WireText

/// An HTTP date (RFC 9110, 5.6.7): the current format, and the two obsolete ones that recipients must accept.
public enum HTTPDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37
    /// 1994`; nil for any other text.
    public static func seconds(_ text: String) -> Int64? {
        guard text.utf8.count <= 64 else { return nil }
        let parts = Bytes.lowercased(text).split(whereSeparator: { $0 == " " || $0 == "," }).map(String.init)
        if parts.count == 6, parts[5] == "gmt" || parts[5] == "utc" {
            return seconds(day: parts[1], month: parts[2], year: parts[3], time: parts[4])
        }
        if parts.count == 4, parts[3] == "gmt" {
            let date = parts[1].split(separator: "-").map(String.init)
            guard date.count == 3, date[2].utf8.count == 2, let short = number(date[2]) else { return nil }
            // RFC 9110 wants a year with two digits that would be more than 50 years in the future to be read as a year
            // in the past. A fixed limit (70) is near enough.
            return seconds(day: date[0], month: date[1], year: "\(short + (short < 70 ? 2000 : 1900))", time: parts[2])
        }
        if parts.count == 5 { return seconds(day: parts[2], month: parts[1], year: parts[4], time: parts[3]) }
        return nil
    }

    private static func seconds(day: String, month: String, year: String, time: String) -> Int64? {
        let clock = time.split(separator: ":").map(String.init)
        guard let month = months.firstIndex(of: month), let day = number(day), (1...31).contains(day),
            year.utf8.count == 4, let year = number(year), clock.count == 3,
            let hour = number(clock[0]), hour < 24, let minute = number(clock[1]), minute < 60,
            let second = number(clock[2]), second <= 60
        else { return nil }
        return days(year, Int64(month) + 1, day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    /// Days since 1970-01-01 in the Gregorian calendar, computed in eras of 400 years that begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private static func number(_ text: String) -> Int64? {
        guard (1...4).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }
}

/// Parses protocol text by bytes.
enum Bytes {
    static func lowercased(_ text: some StringProtocol) -> String {
        String(wire: text.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 })
    }

    /// The text without spaces and tabs at both ends.
    static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        var rest = text
        while rest.first == 0x20 || rest.first == 0x09 { rest.removeFirst() }
        while rest.last == 0x20 || rest.last == 0x09 { rest.removeLast() }
        return rest
    }

    /// A length or an offset: 1 to 18 digits.
    static func count(_ text: some Collection<UInt8>) -> Int64? {
        guard (1...18).contains(text.count) else { return nil }
        var result: Int64 = 0
        for byte in text {
            guard (0x30...0x39).contains(byte) else { return nil }
            result = result * 10 + Int64(byte - 0x30)
        }
        return result
    }

    /// Whether a byte may be in a token (RFC 9110, 5.6.2).
    static func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
