// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Why a measurement failed: a sentence that says what to do, if anything can be done.
struct Trouble: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The user pressed Ctrl-C: end and remove everything, then exit.
struct Interrupted: Error {}

/// Catches signals that would end the harness, so that it can end its processes first.
enum Interruption {
    nonisolated(unsafe) private static var signal: sig_atomic_t = 0
    nonisolated(unsafe) private static var alarms: sig_atomic_t = 0

    /// Without SA_RESTART: blocking calls return early and then check for the signal.
    static func watch() {
        for number in [SIGINT, SIGTERM, SIGHUP, SIGALRM] {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { number in
                if number == SIGALRM { Interruption.alarms += 1 } else { Interruption.signal = number }
            }
            sigaction(number, &action, nil)
        }
        Glibc.signal(SIGPIPE, SIG_IGN)
    }

    /// Runs `body` with an alarm; `isOver` says whether the time is up.
    static func limited<Result>(_ seconds: Double, _ body: (_ isOver: () -> Bool) throws -> Result) rethrows -> Result {
        let before = alarms
        alarm(UInt32(max(1, seconds)))
        defer { alarm(0) }
        return try body { alarms != before }
    }

    /// Throws once a signal has arrived.
    static func check() throws {
        if signal != 0 { throw Interrupted() }
    }
}

/// CLOCK_MONOTONIC in seconds, the same clock as in workers' reports.
func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Sleeps; a signal may end the sleep early.
func pause(_ seconds: Double) {
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int((seconds - seconds.rounded(.down)) * 1e9))
    nanosleep(&time, nil)
}

/// Polls every `step` seconds until the condition is true; false on timeout.
func waitUntil(_ seconds: Double, step: Double = 0.001, _ isTrue: () throws -> Bool) throws -> Bool {
    let end = now() + seconds
    while true {
        try Interruption.check()
        if try isTrue() { return true }
        if now() >= end { return false }
        if step > 0 { pause(step) }
    }
}

/// A number with commas, for tables and titles.
func grouped(_ number: Int) -> String {
    let digits = String(number)
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { text += "," }
        text.append(digit)
    }
    return text
}

/// Prints a line of progress on standard error.
func say(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}
