// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux

/// The program that a command of `torpor app delegate --on` runs, as far as that is clear without a shell.
enum HookProgram {
    /// The exit statuses with which a shell says that it could not run a command (POSIX, “Exit Status for Commands”).
    static let unrunnable: Set<Int32> = [Outcome.notExecutable.rawValue, Outcome.notFound.rawValue]

    /// The path that a command begins with. Nil if the command begins with anything that the shell looks up or expands.
    static func path(of command: String) -> String? {
        let word = command.drop { $0 == " " }.prefix { !" \t\n;&|<>()".contains($0) }
        guard word.contains("/"), !word.contains(where: { "$`\"'\\*?[]{}~=#!".contains($0) }) else { return nil }
        return String(word)
    }

    /// Why the program of a command cannot be run, in a sentence; nil if it can be, or if that is not clear.
    static func problem(of command: String) -> String? {
        guard let path = path(of: command) else { return nil }
        do throws(Failure) {
            _ = try AppSide.program(path)
            return nil
        } catch {
            return error.message
        }
    }
}
