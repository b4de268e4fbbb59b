// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink
package import VarlinkServer

extension Reply {
    /// Refuses what was asked, with the reason in a sentence.
    package func fail(_ sentence: String) { fail(ManagerInterface.ErrorName.failed, ["message": .string(sentence)]) }

    /// There is no app of that name.
    package func fail(_ unknown: Selection.Unknown) {
        if let problem = unknown.problem { return fail(problem) }
        fail(
            ManagerInterface.ErrorName.unknownApp,
            ["name": .string(unknown.name), "nearest": .optional(unknown.nearest)]
        )
    }
}
