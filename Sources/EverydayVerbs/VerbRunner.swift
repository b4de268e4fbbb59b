// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
package import TorporAPI
import Varlink
import WireText

/// Runs a verb on apps: sends the request, waits, and reports what happened to each app.
package enum VerbRunner {
    /// Runs a verb, and waits if the request says so. Returns the results of the apps for which it succeeded.
    @discardableResult
    package static func run(_ request: VerbRequest, _ options: PlainOptions) throws -> [VerbResult] {
        let usesConfiguration = request.verb == .start || request.verb == .restart
        let limit = request.timeoutMilliseconds
        return try run(waitsFor(request), limit: limit, options, warns: usesConfiguration) { left, token in
            var request = request
            request.timeoutMilliseconds = left
            request.token = token
            return .verb(request)
        }
    }

    /// Sends a request until it has a reply, and reports the results.
    ///
    /// - Parameters:
    ///   - words: what the verb waits for, in words for the user.
    ///   - limit: the maximum time to wait, in milliseconds.
    ///   - warns: whether to warn if the configuration was edited but not applied.
    ///   - request: makes the request, given the remaining time and the token.
    @discardableResult
    package static func run(
        _ words: String,
        limit milliseconds: Int64?,
        _ options: PlainOptions,
        warns: Bool = false,
        _ request: @escaping (Int64?, RequestToken) -> ManagerRequest
    ) throws -> [VerbResult] {
        let token = RequestToken.random()
        var manager = try Manager(options)
        manager.saysThatItWaits = false
        let isOnTerminal = ThisProcess.isTerminal(2)
        let waiting = Waiting(for: words, isShown: !options.json && isOnTerminal)
        let late = lateSteps(saysSteps: !options.json, isOnTerminal)
        defer {
            waiting.end()
            late?.end()
        }
        let began = Clock.monotonic()
        let limit = milliseconds.map { Duration.milliseconds(min($0, 1 << 40)) }
        var last: VerbProgress?
        // The limit also includes the time that passed before the supervisor was replaced.
        func left() -> Int64? {
            limit.map { max(0, (began + $0 - Clock.monotonic()).microseconds / 1000) }
        }
        // The daemon applies the limit itself. This timeout is longer, and only for a daemon that hangs.
        let reply = try manager.call(
            request(left(), token),
            deadline: limit.map { began + $0 },
            reserve: .seconds(5)
        ) { progress in
            guard !options.json, let step = try? VerbProgress(json: progress), !step.text.isEmpty else { return }
            guard isOnTerminal || Self.isSaidAtOnce(step) else { return Self.note(step, in: late) }
            late?.note(step.app, nil)
            // After an upgrade, the new supervisor reports the app's current step again: do not show it twice.
            if step != last { Complaint.say(Self.line(step), .remark) }
            last = step
        }
        waiting.end()
        late?.end()
        let results = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("results") { json throws(FieldError) in try VerbResult(json: json) }
        }
        show(results, json: options.json)
        if warns { manager.warnOfEdits() }
        if results.contains(where: { !$0.ok }) { throw Failure(status: .failed, message: nil) }
        return results
    }

    /// If standard error is not a terminal, a verb that waits says why only after this time.
    package static let silence = Duration.seconds(2)

    /// Whether a step is said at once even if standard error is not a terminal: a wait for locked data, since only a
    /// user can end it, and the pull of an image, which usually takes long.
    package static func isSaidAtOnce(_ step: VerbProgress) -> Bool {
        let pulls = [" is launching: pulling ", ", which is pulling "]
        return waitsForUnlock(step) || pulls.contains { step.text.contains($0) }
    }

    /// Whether a step explains a wait, if the wait takes long: an app is being restarted, or is not ready for a known
    /// reason.
    private static func explainsLongWait(_ step: VerbProgress) -> Bool {
        [": restart ", "is launching: ", " is held back: ", " waits for "].contains { step.text.contains($0) }
    }

    /// Says the steps after ``silence``; nil if steps are said at once, or never.
    package static func lateSteps(saysSteps: Bool, _ isOnTerminal: Bool) -> LateSteps? {
        saysSteps && !isOnTerminal ? LateSteps(after: silence) : nil
    }

    /// Notes a step that is not said at once.
    package static func note(_ step: VerbProgress, in late: LateSteps?) {
        late?.note(step.app, explainsLongWait(step) ? line(step) : nil)
    }

    /// Whether the launch of the app waits until a user unlocks its data.
    private static func waitsForUnlock(_ step: VerbProgress) -> Bool {
        step.text.contains(" is held back: its data is locked")
    }

    /// What the verb waits for, in words.
    private static func waitsFor(_ request: VerbRequest) -> String {
        let apps = Terminal.harmless(request.apps.joined(separator: " "))
        if let state = request.state { return "\(apps): not \(state) yet" }
        return "\(request.verb.rawValue) \(apps): under way"
    }

    /// A step with the app's name before it, unless the step's text begins with the name.
    package static func line(_ step: VerbProgress) -> String {
        let line = step.text.hasPrefix(step.app + " ") ? step.text : "\(step.app): \(step.text)"
        return waitsForUnlock(step) ? line + "; --timeout bounds the wait" : line
    }

    private static func show(_ results: [VerbResult], json: Bool) {
        if json { Output.document(.array(results.map(\.json))) }
        var text = ""
        for result in results {
            guard result.ok else {
                Complaint.say(sentence(result))
                continue
            }
            text += sentence(result) { Terminal.coloured($0, Terminal.colour(ofState: $0)) } + "\n"
        }
        if !json { Output.page(text) }
    }

    /// A sentence about the result for one app. `paint` colours the app's state.
    package static func sentence(_ result: VerbResult, paint: (String) -> String) -> String {
        guard result.ok else {
            let message = result.message ?? result.error ?? "it failed, the app is \(result.state)"
            return Terminal.harmless((message.hasPrefix(result.app) ? "" : "\(result.app): ") + message)
        }
        var text = "\(result.app): \(paint(result.state))"
        if let pid = result.pid { text += " (pid \(pid))" }
        if let more = addition(result) { text += ", \(Terminal.harmless(more))" }
        return text
    }

    /// A sentence about the result for one app, without colours.
    package static func sentence(_ result: VerbResult) -> String { sentence(result) { $0 } }

    /// The part of the result's message that adds something to the app's name and state; nil if there is none.
    private static func addition(_ result: VerbResult) -> String? {
        guard var message = result.message, !message.isEmpty else { return nil }
        if message.hasPrefix(result.app + " ") { message.removeFirst(result.app.count + 1) }
        for known in ["is \(result.state)", "is not running"] {
            if message == known { return nil }
            if message.hasPrefix(known + "; ") { message.removeFirst(known.count + 2) }
        }
        return message
    }
}
