// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink
package import VarlinkServer

extension Reply {
    /// Refuses a request; the sentence gives the reason.
    package func fail(_ sentence: String) { fail(ManagerInterface.ErrorName.failed, ["message": .string(sentence)]) }

    /// Refuses a request because no app has that name.
    package func fail(_ unknown: Selection.Unknown) {
        if let problem = unknown.problem { return fail(problem) }
        fail(
            ManagerInterface.ErrorName.unknownApp,
            ["name": .string(unknown.name), "nearest": .optional(unknown.nearest)]
        )
    }
}
