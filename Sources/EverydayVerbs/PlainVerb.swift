// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import WireText

/// A verb that requests a state for apps, such as `suspend`, without the argument parser (see ``PlainArguments``).
package struct PlainVerb {
    private let request: VerbRequest
    private let options: PlainOptions

    /// The states that `wait` can wait for.
    package static let states = ["not-running", "inactive", "active", "background", "suspended"]

    init?(_ name: String, _ words: ArraySlice<String>) {
        guard let verb = Self.verb(name) else { return nil }
        var request = VerbRequest(verb: verb, apps: [])
        let read = PlainWords(words) { option, words in
            switch option {
            case "--timeout" where verb != .reset:
                return words.set(&request.timeoutMilliseconds, Quantity.milliseconds)
            case "--for" where verb == .wait:
                return words.set(&request.state) { Self.states.contains($0) ? $0 : nil }
            case "--no-wait" where verb != .reset && verb != .wait: request.wait = false
            case "--force" where verb == .start || verb == .suspend || verb == .restart: request.force = true
            case "--background" where verb == .start: request.background = true
            case "--until-boot" where verb == .stop: request.untilBoot = true
            case "--keep-state" where verb == .stop || verb == .restart: request.keepState = true
            default: return false
            }
            return true
        }
        guard let line = read, !line.operands.isEmpty, verb != .wait || request.state != nil else { return nil }
        request.apps = line.operands
        self.request = request
        options = line.options
    }

    /// The verb with this name if it requests a state for apps; otherwise nil.
    private static func verb(_ name: String) -> Verb? {
        switch name {
        case "start": .start
        case "stop": .stop
        case "restart": .restart
        case "foreground": .foreground
        case "background": .background
        case "suspend": .suspend
        case "resume": .resume
        case "force-quit", "kill": .kill
        case "reset": .reset
        case "wait": .wait
        default: nil
        }
    }

    func run() throws {
        let results = try VerbRunner.run(request, options)
        if request.verb == .suspend { SuspendHint.show(results, options) }
    }
}
