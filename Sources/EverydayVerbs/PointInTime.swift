// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import WireText

/// A point in time on the command line. Accepted forms are: a duration (that long ago), `2 hours ago`, `boot`, `today`
/// and `yesterday` (midnight), `14:04` or `14:04:00` (today), and `2026-01-31T12:34:56`. The last form is in the time
/// zone in which times are shown, unless it ends with `Z` or an offset.
package struct PointInTime: Sendable {
    /// The time in microseconds since 1970.
    package let microseconds: Int64

    /// The accepted forms, for help texts.
    package static let help =
        "10min or '2 hours ago', boot, yesterday, 14:04, or 2026-01-31T12:34:56 (with Z: UTC)."

    private static let units = ["second": "s", "minute": "min", "hour": "h", "day": "d"]

    package init?(argument: String) {
        if argument == "boot" {
            microseconds = Times.now - Clock.boot().microseconds
        } else if argument == "today" || argument == "yesterday" {
            guard let time = Times.midnight(isYesterdays: argument == "yesterday") else { return nil }
            microseconds = time
        } else if let time = Times.parse(Times.date(Times.now) + "T" + argument) {
            microseconds = time
        } else if argument.hasSuffix(" ago") {
            let words = argument.dropLast(4).split(separator: " ").map { word in
                Self.units.first { word == $0.key || word == $0.key + "s" }?.value ?? String(word)
            }
            guard let limit = Quantity.milliseconds(words.joined()) else { return nil }
            microseconds = Times.now - limit * 1000
        } else if let limit = Quantity.milliseconds(argument) {
            microseconds = Times.now - limit * 1000
        } else if let time = Times.parse(argument) {
            microseconds = time
        } else {
            return nil
        }
    }
}
