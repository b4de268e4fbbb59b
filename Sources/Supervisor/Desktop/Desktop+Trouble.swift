// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Engine
import EventLoop
import Lifecycle

/// What torpord does if torpor-desktop cannot be started, ends, or does not answer.
extension Desktop {
    func fail(_ why: String, isRetried: Bool) {
        hasTrouble(why, isRetried: isRetried)
        // Report that sound cannot be followed only if no other helper is started, or if this is not the first failure:
        // after the first one, the next helper starts soon.
        if listens, !isRetried || failures > 0 { sound.isHeard(why) }
        // Without a session, do not retry: logind reports when there is one.
        guard isRetried else { return }
        let backoff = RestartBackoff()
        let delay = backoff.delay(attempt: failures)
        failures = min(failures + 1, 32)
        if retry == nil {
            retry = try? loop.timer { [weak self] in
                self?.retry?.disarm()
                self?.look()
            }
        }
        retry?.arm(after: delay + delay * Double.random(in: -backoff.jitter...backoff.jitter))
    }

    /// Called when the helper does not answer, because it was stopped or is in an endless loop. Kills the helper. The
    /// next helper then replaces what this one has on the screen.
    func helperIsSilent() {
        guard let helper else { return }
        let why = "does not answer, and is killed"
        // The killed process may not be gone soon: if it waits for a disk, it ends only when the disk answers.
        isLeaving = true
        hasTrouble("torpor-desktop \(why)", isRetried: true)
        helper.fail(why)
    }

    private func hasTrouble(_ why: String, isRetried: Bool) {
        guard trouble != why else { return }
        trouble = why
        let what = [
            ledger.isEmpty ? nil : "alerts are not on the desktop",
            focus.kind.map { _ in "the focus is not followed" },
            listens ? "streams of PipeWire are not seen" : nil,
        ]
        let sentence = "\(what.compactMap(\.self).joined(separator: ", and ")): \(why)"
        // If no retry is needed and the helper was only to show alerts, do not warn: the configured commands show the
        // alerts too.
        let isExpected = !isRetried && isShownByCommands && focus.kind == nil && !listens
        if isExpected { log.info(sentence) } else { log.warning(sentence) }
        supervisor.service.changed()
        // A critical alert interrupts apps until a user closes it. Report that the screen is gone, so that these
        // interruptions end although no user can close the alert.
        report(.server(nil))
        for id in ledger.ids { report(.failed(id: id, reason: why)) }
    }
}
