// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux

extension TorporApp {
    /// Sends `WATCHDOG=1`, for a program that sends its heartbeats itself, where they prove more.
    public func sendHeartbeat() {
        guard let socket = environment.notifySocket else { return }
        try? NotifySpeech.say("WATCHDOG=1", to: socket)
    }

    /// Says `READY=1`, for an app whose supervisor waits for that.
    func sendReady() {
        guard let socket = environment.notifySocket else { return }
        try? NotifySpeech.say("READY=1", to: socket)
    }

    /// Says on what the app works, for `torpor status`: a short sentence.
    public func say(status: String) {
        guard let socket = environment.notifySocket else { return }
        let line = status.split(separator: "\n").first.map(String.init) ?? ""
        try? NotifySpeech.say("STATUS=" + line, to: socket)
    }

    /// A task that sends heartbeats twice as often as they are due; nil when none are asked for.
    func startHeartbeats() -> Task<Void, Never>? {
        guard let period = environment.watchdog, environment.notifySocket != nil else { return nil }
        return Task { [weak self] in
            while !Task.isCancelled {
                self?.sendHeartbeat()
                try? await Task.sleep(for: period / 2)
            }
        }
    }
}
