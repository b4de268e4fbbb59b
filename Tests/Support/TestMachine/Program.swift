// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A program of this machine, started with a pipe to its standard input; its output goes to a file without a name.
final class Program {
    let pid: pid_t
    /// Closed, it tells the program to end. No other child inherits it.
    private var input: Int32
    private let output: Int32
    private var status: Int32?

    init(_ words: [String]) throws {
        var name = Array((NSTemporaryDirectory() + "output-XXXXXX").utf8CString)
        let file = mkstemp(&name)
        guard file >= 0 else { throw Trouble("no temporary file: \(errno)") }
        unlink(name)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        output = file
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw Trouble("no pipe: \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        input = ends[1]
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, output, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        // SETSID, SETSIGMASK: a Ctrl-C is for the tests, whose end it hears of by its input.
        posix_spawnattr_setflags(&attributes, Int16(0x80 | 0x08))
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        let error = posix_spawnp(&pid, words[0], &actions, &attributes, &arguments, environ)
        close(ends[0])
        guard error == 0 else {
            close(input)
            throw Trouble("\(words[0]) cannot be started: \(String(cString: strerror(error)))")
        }
        self.pid = pid
    }

    deinit {
        closeInput()
        close(output)
    }

    func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    /// What it has written so far.
    var text: String {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = pread(output, &piece, piece.count, off_t(all.count))
            guard count > 0 else { return String(decoding: all, as: UTF8.self) }
            all += piece[..<count]
        }
    }

    /// Exit status, or minus the signal that ended it, once it has ended.
    func ended() -> Int32? {
        if let status { return status }
        var word: Int32 = 0
        guard waitpid(pid, &word, WNOHANG) == pid else { return nil }
        status = word & 0x7f == 0 ? (word >> 8) & 0xff : -(word & 0x7f)
        return status
    }

    /// Runs a program to its end; it is killed after so many seconds.
    static func run(_ words: [String], within seconds: Int) throws -> Answer {
        let program = try Program(["timeout", "--kill-after=2", "\(seconds)"] + words)
        program.closeInput()
        while true {
            if let status = program.ended() { return Answer(status: status, output: program.text) }
            usleep(2_000)
        }
    }
}

/// How a command ended and what it wrote, standard error included.
package struct Answer {
    package let status: Int32
    package let output: String

    package var ok: Bool { status == 0 }
    package var lines: [String] { output.split(separator: "\n").map(String.init) }
    /// What it wrote, without the last line's end.
    package var text: String { output.trimmingCharacters(in: .whitespacesAndNewlines) }
}

/// Something that keeps a test from going on.
package struct Trouble: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
