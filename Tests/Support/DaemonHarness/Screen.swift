// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing

/// `torpor top` of this build in a tmux of its own, whose server listens in the daemon's folder: a real terminal that
/// can be looked at.
package final class Screen {
    package static let isThere = File.isExecutable("/usr/bin/tmux")

    private let daemon: Daemon
    private let socket: String
    private var isOver = false

    /// Begins; what runs is a shell, so that there is something to come back to.
    package init(
        _ daemon: Daemon,
        columns: Int = 80,
        rows: Int = 24,
        options: String = "",
        variables: String = ""
    ) throws {
        self.daemon = daemon
        socket = daemon.directory + "/tmux"
        // A shell that is not bash would stay between.
        let shell = "exec env PS1=prompt: /bin/bash --norc --noprofile"
        try run(
            ["-f", "/dev/null", "-u", "start-server", ";", "set-option", "-g", "status", "off", ";"]
                + ["set-option", "-g", "default-terminal", "screen-256color", ";"]
                + ["new-session", "-d", "-x", "\(columns)", "-y", "\(rows)", shell]
        )
        try waitFor("prompt:")
        try type("\(variables) \(Built.path("torpor")) top \(options)")
    }

    deinit { close() }

    /// Ends the server, with all that is in it; the daemon may then be stopped.
    package func close() {
        guard !isOver else { return }
        isOver = true
        _ = try? tmux(["kill-server"])
    }

    private func tmux(_ words: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run(
            ["/usr/bin/tmux", "-S", socket] + words,
            environment: [
                "TPTEST": daemon.directory, "TORPOR_MANAGER_SOCKET": daemon.socket, "LC_ALL": "C.UTF-8", "TMUX": "",
                "TMPDIR": daemon.directory, "TERM": "xterm-256color", "NO_COLOR": "", "HISTFILE": "/dev/null",
            ]
        )
    }

    package func run(_ words: [String]) throws {
        let result = try tmux(words)
        guard result.code == 0 else { throw Trouble("tmux \(words): \(result.output)") }
    }

    /// Presses keys, as tmux names them.
    package func press(_ keys: String...) throws { try run(["send-keys"] + keys) }

    /// Types a line.
    package func type(_ line: String) throws {
        try run(["send-keys", "-l", line])
        try press("Enter")
    }

    package func resize(columns: Int, rows: Int) throws {
        try run(["resize-window", "-x", "\(columns)", "-y", "\(rows)"])
    }

    /// What is on the screen, a line each.
    package func lines() throws -> [String] {
        try tmux(["capture-pane", "-p"]).output.split(separator: "\n", omittingEmptySubsequences: false).map(
            String.init
        )
    }

    /// Whether the terminal was told to send the keys that terminfo knows.
    package func hasKeypad() throws -> Bool {
        try tmux(["display-message", "-p", "#{keypad_cursor_flag}"]).output.hasPrefix("1")
    }

    /// With the escapes of colours.
    package func colours() throws -> String { try tmux(["capture-pane", "-e", "-p"]).output }

    /// The process that runs on the terminal, which is the shell's child.
    package func top() throws -> Int32 {
        let text = try tmux(["display-message", "-p", "#{pane_pid}"]).output
        guard let shell = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)),
            let child = try ProcFS.children(shell).first
        else { throw Trouble("nothing runs in the shell: \(text)") }
        return child
    }

    /// The shell and its children: what they do, which of them has the terminal, and the signals that wait for them.
    private func processes() -> String {
        let text = (try? tmux(["display-message", "-p", "#{pane_pid}"]).output) ?? ""
        guard let shell = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            return "no shell: \(text)"
        }
        let fields = ["Name:", "State:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"]
        return ([shell] + ((try? ProcFS.children(shell)) ?? [])).map { pid in
            let status = (try? File.readString("/proc/\(pid)/status", limit: 8192)) ?? ""
            let lines = status.split(separator: "\n").filter { line in fields.contains { line.hasPrefix($0) } }
            let stat = (try? File.readString("/proc/\(pid)/stat", limit: 1024)) ?? ""
            return lines.joined(separator: " ") + " · " + stat.split(separator: " ").prefix(8).joined(separator: " ")
        }.joined(separator: "\n")
    }

    /// Waits until the screen is as wanted; gives its lines.
    @discardableResult
    package func waitFor(
        _ what: String,
        at location: SourceLocation = #_sourceLocation,
        _ isSo: ([String]) -> Bool
    ) throws -> [String] {
        let end = Clock.monotonic() + Daemon.bound
        while true {
            let lines = try lines()
            if isSo(lines) { return lines }
            guard Clock.monotonic() < end else {
                Issue.record(
                    "the screen did not show \(what):\n\(lines.joined(separator: "\n"))\n\(processes())",
                    sourceLocation: location
                )
                throw Trouble("waited in vain for \(what)")
            }
            usleep(10_000)
        }
    }

    @discardableResult
    package func waitFor(_ text: String, at location: SourceLocation = #_sourceLocation) throws -> [String] {
        try waitFor(text, at: location) { $0.contains { $0.contains(text) } }
    }

    /// Waits until an app's row has this in it.
    @discardableResult
    package func waitFor(
        _ text: String,
        of app: String,
        at location: SourceLocation = #_sourceLocation
    ) throws -> String {
        let lines = try waitFor("\(text) of \(app)", at: location) {
            $0.contains { Self.is($0, of: app) && $0.contains(text) }
        }
        return lines.first { Self.is($0, of: app) } ?? ""
    }

    private static func `is`(_ line: String, of app: String) -> Bool { line.dropFirst().hasPrefix(app + " ") }
}
