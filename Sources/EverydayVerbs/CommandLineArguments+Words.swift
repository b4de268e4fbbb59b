// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages
import Linux
import WireText

extension CommandLineArguments {
    /// Ends this program if an argument is not UTF-8, or has too many marks in a row.
    package static func requireBounded() {
        // Swift has replaced bytes in arguments that are not UTF-8. Refuse such an argument, because the verb would act
        // on a name that the user has not given.
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
        // A script may pass names that other people have chosen. Limit combining marks and regional indicators in them,
        // which slow down Swift's text functions: see ``WireText``.
        for (number, argument) in CommandLine.arguments.enumerated() where !WireText.isBounded(argument) {
            ThisProcess.complain(
                "torpor: argument \(number) has more than \(WireText.mostMarks) combining marks, or more than "
                    + "\(WireText.mostIndicators) regional indicators, in a row: no name has so many"
            )
            ThisProcess.exit(2)
        }
    }

    /// The options before the verb, which every verb has, and the words from the verb on.
    package static func split(_ arguments: [String]) -> (options: [String], words: ArraySlice<String>) {
        var options: [String] = []
        var rest = arguments[...]
        while let first = rest.first {
            if first == "--json" || first.hasPrefix("--socket=") {
                options.append(rest.removeFirst())
            } else if first == "--socket", rest.count >= 2 {
                options.append(contentsOf: rest.prefix(2))
                rest = rest.dropFirst(2)
            } else {
                break
            }
        }
        return (options, rest)
    }
}
