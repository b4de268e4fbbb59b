// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages
import Linux
import Varlink

/// Messages on standard error: sentences wrapped at the terminal's width or, with `--json`, one object per line.
package enum Complaint {
    package enum Level: String {
        /// The request failed.
        case error
        /// The request succeeded, but the user should know this.
        case warning
        /// An entry of a list, such as a mistake in a configuration.
        case remark
    }

    package static let isJSON = CommandLineArguments.isGiven("--json")

    /// Writes a message on its own line, above the line that shows what the verb waits for. `status`: the exit status,
    /// if the message is an error that ends the program; otherwise nil.
    package static func say(_ text: String, _ level: Level = .error, status: Outcome? = nil) {
        let text = Terminal.harmless(text)
        Waiting.above { ThisProcess.complain(isJSON ? json(text, level, status) : sentence(text, level)) }
    }

    private static func sentence(_ text: String, _ level: Level) -> String {
        Terminal.fitted(level == .remark ? text : "torpor: " + text, in: Terminal.columns(of: 2), indent: 0)
    }

    private static func json(_ text: String, _ level: Level, _ status: Outcome?) -> String {
        var object: JSONObject = ["level": .string(level.rawValue), "message": .string(text)]
        if let status { object["exit_status"] = .int(Int64(status.rawValue)) }
        return JSON.object(object).description
    }
}
