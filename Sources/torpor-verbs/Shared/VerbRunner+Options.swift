// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import TorporAPI

extension VerbRunner {
    /// Runs a verb. Returns the results of the apps for which it succeeded.
    @discardableResult
    static func run(
        _ request: VerbRequest,
        _ options: GlobalOptions,
        wait: WaitOptions? = nil
    ) throws -> [VerbResult] {
        var request = request
        if let wait {
            request.wait = !wait.noWait
            request.timeoutMilliseconds = wait.timeout?.milliseconds
        }
        return try run(request, PlainOptions(options))
    }

    /// Asks an app to open a file or URL.
    static func run(_ request: OpenRequest, _ options: GlobalOptions, wait: WaitOptions) throws {
        try run("open: under way", limit: wait.timeout?.milliseconds, PlainOptions(options)) { left, token in
            var request = request
            request.wait = !wait.noWait
            request.timeoutMilliseconds = left
            request.token = token
            return .open(request)
        }
    }

    /// Asks an app to continue an activity.
    static func run(_ request: ContinueActivityRequest, _ options: GlobalOptions, wait: WaitOptions) throws {
        try run("continue: under way", limit: wait.timeout?.milliseconds, PlainOptions(options)) { left, token in
            var request = request
            request.wait = !wait.noWait
            request.timeoutMilliseconds = left
            request.token = token
            return .continueActivity(request)
        }
    }

    static func run(_ request: OpenSceneRequest, _ options: GlobalOptions, wait: WaitOptions) throws {
        let words = Terminal.harmless("open \(request.template)@\(request.name): under way")
        try run(words, limit: wait.timeout?.milliseconds, PlainOptions(options)) { left, token in
            var request = request
            request.wait = !wait.noWait
            request.timeoutMilliseconds = left
            request.token = token
            return .openScene(request)
        }
    }
}
