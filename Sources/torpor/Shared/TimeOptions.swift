// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Options of verbs that show times.
struct TimeOptions: ParsableArguments {
    /// Read by ``Times/zone``.
    @Flag(help: "Show and read times in UTC instead of the local time zone.")
    var utc = false
}
