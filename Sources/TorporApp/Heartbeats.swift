// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux

extension TorporApp {
    /// Sends `WATCHDOG=1`. A program that sends its own heartbeats calls this in the code whose progress the heartbeats
    /// should prove.
    public func sendHeartbeat() {
        guard let socket = environment.notifySocket else { return }
        try? NotifySpeech.say("WATCHDOG=1", to: socket)
    }

    /// Sends `READY=1`, for an app with `ready = "notify"`.
    func sendReady() {
        guard let socket = environment.notifySocket else { return }
        try? NotifySpeech.say("READY=1", to: socket)
    }

    /// Sends a short sentence about what the app is doing, for `torpor status`.
    public func say(status: String) {
        guard let socket = environment.notifySocket else { return }
        let line = status.split(separator: "\n").first.map(String.init) ?? ""
        try? NotifySpeech.say("STATUS=" + line, to: socket)
    }

    /// Starts a task that sends heartbeats at half the required interval; nil if the app need not send any.
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
