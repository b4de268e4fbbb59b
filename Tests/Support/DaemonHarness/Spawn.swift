// SPDX-License-Identifier: Apache-2.0

package import Foundation
import Linux

/// Starts programs without Foundation's Process, whose threads would mix with ours.
package enum Spawn {
    /// Held while a process is made and while programs are written: a child that holds a program open for writing for
    /// the moment before its exec keeps others from running it (ETXTBSY).
    package static let lock = NSLock()

    /// Starts in a session of its own; standard output and error go to the file.
    package static func start(_ words: [String], environment: [String: String], output: String) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(0x80 | 0x08 | 0x04))  // SETSID, SETSIGMASK, SETSIGDEF
        var variables = ProcessInfo.processInfo.environment
        for name in ["NOTIFY_SOCKET", "LISTEN_FDS", "JOURNAL_STREAM", "TORPOR_KEEPER_FD"] { variables[name] = nil }
        variables.merge(environment) { $1 }
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        var entries: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for pointer in arguments + entries { free(pointer) } }
        var pid: pid_t = 0
        let error = lock.withLock { posix_spawn(&pid, words[0], &actions, &attributes, &arguments, &entries) }
        guard error == 0 else { throw Trouble("posix_spawn \(words[0]): \(String(cString: strerror(error)))") }
        return pid
    }

    /// Runs to the end, and gives exit status (or minus the signal) and what it wrote.
    package static func run(
        _ words: [String],
        environment: [String: String] = [:],
        within bound: Duration = .seconds(90)
    ) throws -> (code: Int32, output: String) {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let pid = try start(words, environment: environment, output: folder + "/out")
        let end = Clock.monotonic() + bound
        var status: Int32 = 0
        while waitpid(pid, &status, WNOHANG) == 0 {
            guard Clock.monotonic() < end else {
                kill(pid, SIGKILL)
                waitpid(pid, &status, 0)
                throw Trouble("\(words) did not end in \(bound)")
            }
            usleep(2_000)
        }
        let output = (try? String(contentsOfFile: folder + "/out", encoding: .utf8)) ?? ""
        return (status & 0x7f == 0 ? (status >> 8) & 0xff : -(status & 0x7f), output)
    }
}

/// The programs that are tested: those of this build, or of another one in the folder `TORPOR_PROGRAMS`, such as the
/// release build, which takes a third of the processor time.
package enum Built {
    package static let folder: String = {
        if let other = ProcessInfo.processInfo.environment["TORPOR_PROGRAMS"] { return other }
        for start in [ThisProcess.executable, CommandLine.arguments.first] {
            var folder = start.flatMap { File.parent(of: $0) }
            for _ in 0..<4 {
                guard let here = folder else { break }
                if File.isExecutable(here + "/torpord") { return here }
                folder = File.parent(of: here)
            }
        }
        for argument in CommandLine.arguments {
            if let here = File.parent(of: argument), File.isExecutable(here + "/torpord") { return here }
        }
        return FileManager.default.currentDirectoryPath + "/.build/debug"
    }()

    package static func path(_ name: String) -> String { folder + "/" + name }
}

/// What the tests were built of.
package enum Sources {
    /// The folder of the package, without a slash at its end.
    package static let root = String(#filePath.components(separatedBy: "/Tests/")[0])
}
