// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux

let arguments = CommandLineArguments.parsable(Array(CommandLine.arguments.dropFirst()))
if let plain = PlainArguments(arguments) {
    ThisProcess.exit(Outcome.status { try plain.run() })
}
ThisProcess.exit(Outcome.status { try Torpor.parseAndRun(arguments) })
