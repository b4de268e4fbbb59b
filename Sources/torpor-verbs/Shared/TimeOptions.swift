// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Options of verbs that show times.
struct TimeOptions: ParsableArguments {
    /// Declared only for the parser and the help: ``Times/zone`` finds this option in the arguments itself.
    @Flag(help: "Show and read times in UTC instead of the local time zone.")
    var utc = false
}
