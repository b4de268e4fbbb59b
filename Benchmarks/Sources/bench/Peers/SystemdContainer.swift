// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A booted systemd (scripts/systemd-container) and a shell inside it.
final class SystemdContainer {
    /// The container's PID 1, by its pid outside.
    let systemd: pid_t
    /// The cgroup of the whole container, below the cgroup v2 mount.
    let group: String
    private let script: Child
    private let shell: Child
    private let fifo: String
    private let answers: Int32

    /// Boots the container, in a second or less.
    init(
        script path: String,
        root: String,
        folders: [String],
        scratch: String,
        errors: String,
        environment: [String: String] = [:]
    ) throws {
        let output = scratch + "/container"
        let options = folders.flatMap { ["--bind", $0] }
        script = try Child(
            [path, "run", root] + options,
            environment: environment,
            hasInput: true,
            output: output,
            errors: errors
        )
        do {
            (systemd, group) = try Self.waitUntilReady(script, output)
            fifo = scratch + "/answers"
            guard mkfifo(fifo, 0o600) == 0 else { throw Trouble("no FIFO can be made at \(fifo)") }
            // Open it before the shell opens its end, which would block.
            answers = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            guard answers >= 0 else { throw Trouble("\(fifo) cannot be opened") }
            shell = try Child(
                ["nsenter", "-t", "\(systemd)", "-a", "/bin/sh"],
                hasInput: true,
                output: fifo,
                errors: errors
            )
        } catch {
            script.end(grace: 20)
            throw error
        }
    }

    private static func waitUntilReady(_ script: Child, _ output: String) throws -> (pid_t, String) {
        var words: [String] = []
        _ = try waitUntil(90, step: 0.01) {
            // Only a complete line.
            if let text = Processes.read(output), let end = text.firstIndex(of: "\n") {
                words = text[..<end].split(separator: " ").map(String.init)
            }
            return !words.isEmpty || !script.isRunning
        }
        guard words.count == 3, words[0] == "ready", let pid = pid_t(words[1]) else {
            throw Trouble(
                words.isEmpty ? "the container did not come up" : words.dropFirst().joined(separator: " ")
            )
        }
        return (pid, words[2])
    }

    var isRunning: Bool { script.isRunning }

    /// A file of the container, by its path outside.
    func path(_ file: String) -> String { "/proc/\(systemd)/root\(file)" }

    /// systemd's other processes in the container: journal and bus.
    var helpers: [pid_t] { Processes.all().filter { $0.parent == systemd && $0.name != "worker" }.map(\.pid) }

    /// Runs a command in the running shell; returns the seconds until its end.
    @discardableResult
    func run(_ command: String, seconds: Double = 120) throws -> Double {
        let began = now()
        shell.write(line: "\(command) >/dev/null; echo $?")
        var text = ""
        let limit = began + seconds
        while !text.hasSuffix("\n") {
            try Interruption.check()
            guard now() < limit, shell.isRunning else { throw Trouble("\(command) has not ended") }
            var entry = pollfd(fd: answers, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 200) > 0 else { continue }
            var bytes = [UInt8](repeating: 0, count: 64)
            let count = read(answers, &bytes, bytes.count)
            if count > 0 { text += String(decoding: bytes[..<count], as: UTF8.self) }
        }
        let took = now() - began
        guard text == "0\n" else {
            throw Trouble("\(command) failed in the container (status \(text.trimmingCharacters(in: .whitespaces)))")
        }
        return took
    }

    /// Powers the container off and removes its files.
    func end() {
        shell.write(line: "exit")
        let limit = now() + 1
        while shell.isRunning, now() < limit { pause(0.002) }
        shell.end(grace: 0)
        script.end(grace: 60)
        close(answers)
        unlink(fifo)
    }
}
