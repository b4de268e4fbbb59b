// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux

/// The program with the other verbs, which replaces this one.
enum OtherVerbs {
    private static let name = "torpor-verbs"

    static func run(_ arguments: [String]) throws(Failure) {
        guard let program = ThisProcess.companion(name) else {
            throw Failure(
                status: .failed,
                message: "\(name) is neither beside torpor nor in ../libexec/torpor: install it"
            )
        }
        // By its first argument, torpor-verbs knows where this program is.
        let own = ThisProcess.executable ?? "torpor"
        let error = ThisProcess.execute(program, arguments: [own] + arguments)
        throw Failure(status: .failed, message: "\(program) cannot be run: \(error)")
    }
}
