// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import WireText

// Swift has replaced bytes in arguments that are not UTF-8. Refuse such an argument, because the verb would act on a
// name that the user has not given.
for (argument, number) in zip(CommandLine.arguments, 0...) {
    guard let raw = CommandLine.unsafeArgv[number] else { continue }
    var end = raw
    if argument.utf8.allSatisfy({ byte in
        defer { end += 1 }
        return UInt8(bitPattern: end.pointee) == byte
    }) {
        continue
    }
    ThisProcess.complain(
        "torpor: the argument “\(Terminal.harmless(argument))” is not UTF-8: names, URLs and values must be UTF-8"
    )
    ThisProcess.exit(2)
}

// A script may pass names that other people have chosen. Limit combining marks and regional indicators in them, which
// slow down Swift's text functions: see ``WireText``.
for (number, argument) in CommandLine.arguments.enumerated() where !WireText.isBounded(argument) {
    ThisProcess.complain(
        "torpor: argument \(number) has more than \(WireText.mostMarks) combining marks, or more than "
            + "\(WireText.mostIndicators) regional indicators, in a row: no name has so many"
    )
    ThisProcess.exit(2)
}

let arguments = CommandLineArguments.parsable(Array(CommandLine.arguments.dropFirst()))
if let plain = PlainArguments(arguments) {
    ThisProcess.exit(Outcome.status { try plain.run() })
}
ThisProcess.exit(Outcome.status { try Torpor.parseAndRun(arguments) })
