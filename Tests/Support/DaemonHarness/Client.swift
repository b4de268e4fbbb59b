// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing

/// `torpor` as a user runs it, in the background, with what it writes in a file.
package final class Client {
    package let pid: Int32
    private let file: String
    private let words: [String]
    private var code: Int32?

    package convenience init(_ daemon: Daemon, _ words: String...) throws { try self.init(daemon, words) }

    package init(_ daemon: Daemon, _ words: [String]) throws {
        self.words = words
        file = daemon.directory + "/client-\(UInt32.random(in: 0 ... .max))"
        pid = try Spawn.start(
            [Built.path("torpor")] + words + ["--socket", daemon.socket],
            environment: [:],
            output: file
        )
    }

    deinit {
        guard reap() == nil else { return }
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
    }

    /// What it wrote so far.
    package var output: String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }
    /// Its whole lines so far.
    package var lines: [Substring] { output.split(separator: "\n", omittingEmptySubsequences: false).dropLast() }

    /// The exit status once it has one; minus the signal that ended it.
    package func reap() -> Int32? {
        if let code { return code }
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
        code = status & 0x7f == 0 ? (status >> 8) & 0xff : -(status & 0x7f)
        return code
    }

    /// Whether it is connected and sleeps: it has asked then, and nobody has answered yet.
    package var waitsForReply: Bool {
        let folder = "/proc/\(pid)/fd"
        let links = ((try? File.list(folder)) ?? []).compactMap { try? File.readLink(folder + "/" + $0) }
        return links.contains { $0.hasPrefix("socket:") } && Truth.states(pid) == "S" && reap() == nil
    }

    /// Waits for its end.
    @discardableResult
    package func finish(_ daemon: Daemon, at location: SourceLocation = #_sourceLocation) throws -> Int32 {
        try daemon.eventually("‘torpor \(words.joined(separator: " "))’ ends", at: location) {
            reap() != nil
        }
        return code ?? -1
    }
}

extension Daemon {
    /// Kills torpord as if it had crashed, as soon as there is one.
    package func killTorpord(at location: SourceLocation = #_sourceLocation) throws {
        var pid: Int32?
        try eventually("a torpord runs", at: location) {
            pid = try? torpord()
            return pid != nil
        }
        if let pid { kill(pid, SIGKILL) }
    }

    /// Kills torpord and waits until another one answers.
    package func replaceTorpord(at location: SourceLocation = #_sourceLocation) throws {
        try killTorpord(at: location)
        try waitUntilItAnswers(at: location)
    }

    /// Makes a file that an app waits for.
    package func touch(_ name: String) {
        _ = FileManager.default.createFile(atPath: directory + "/" + name, contents: nil)
    }
}

/// Runs a scenario with a daemon whose torpord comes back at once, however often it is killed.
package func withKilledDaemon(
    _ toml: String,
    files: [String: String] = [:],
    at location: SourceLocation = #_sourceLocation,
    _ body: (Daemon) throws -> Void
) throws {
    try withDaemon(toml, files: files, environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"], at: location, body)
}
