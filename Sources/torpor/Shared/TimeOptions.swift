// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Options of verbs that show times.
struct TimeOptions: ParsableArguments {
    /// ``Times/zone`` reads this option itself.
    @Flag(help: "Show and read times in UTC instead of the local time zone.")
    var utc = false
}
