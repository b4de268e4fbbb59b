// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Options of verbs that show times.
struct TimeOptions: ParsableArguments {
    /// ``Times/zone`` goes by it.
    @Flag(help: "Show and read times in UTC instead of the local time zone.")
    var utc = false
}
