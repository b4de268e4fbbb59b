// SPDX-License-Identifier: Apache-2.0

/// The command line.
package enum CommandLineArguments {
    /// Whether an option that concerns all output was given, whatever the verb: it counts before the parser has read the
    /// rest, and where the rest cannot be read.
    package static func isGiven(_ option: String) -> Bool {
        CommandLine.arguments.dropFirst().prefix { $0 != "--" }.contains(option)
    }
}
