// SPDX-License-Identifier: Apache-2.0

package enum CommandLineArguments {
    /// Whether an option for all output was given. It is read before the parser runs, since it also shapes the
    /// parser's errors.
    package static func isGiven(_ option: String) -> Bool {
        CommandLine.arguments.dropFirst().prefix { $0 != "--" }.contains(option)
    }
}
