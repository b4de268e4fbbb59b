// SPDX-License-Identifier: Apache-2.0

package enum CommandLineArguments {
    /// Whether an option that applies to all output was given. This is found out before the arguments are parsed,
    /// because the option also applies to the parser's error messages.
    package static func isGiven(_ option: String) -> Bool {
        CommandLine.arguments.dropFirst().prefix { $0 != "--" }.contains(option)
    }
}
