// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux

/// The program with the other verbs, which replaces this one.
enum OtherVerbs {
    private static let name = "torpor-verbs"

    static func run(_ arguments: [String]) throws(Failure) {
        guard let own = ThisProcess.executable, let folder = File.parent(of: own) else {
            throw Failure(status: .failed, message: "\(name) cannot be found: /proc/self/exe cannot be read")
        }
        // Try to execute it without looking for it before. By its first argument, it knows where this program is.
        var problem: String?
        for path in ThisProcess.companions(name, of: folder) {
            let error = ThisProcess.execute(path, arguments: [own] + arguments)
            if error != .noSuchFileOrDirectory { problem = "\(path) cannot be run: \(error)" }
        }
        throw Failure(
            status: .failed,
            message: problem ?? "\(name) is neither beside torpor nor in ../libexec/torpor: install it"
        )
    }
}
