// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A bus of its own with a logind that does what it is told (python-dbusmock). Both end with this object, or with the
/// process of the tests.
package final class MockLogind {
    /// What a program finds the bus by.
    package var address: String { "unix:path=\(folder)/bus" }

    private let folder: String
    private let pid: pid_t
    private let input: Int32
    private let output: Int32
    private var rest: [UInt8] = []

    /// Why there can be none here; nil where there can.
    package static let obstacle: String? = {
        guard let answer = try? Child(["/usr/bin/python3", "-c", "import dbus, dbusmock, gi"], in: "/tmp") else {
            return "there is no /usr/bin/python3"
        }
        close(answer.input)
        close(answer.output)
        var status: Int32 = 0
        waitpid(answer.pid, &status, 0)
        guard status == 0 else { return "python3-dbusmock is not installed: make deps" }
        return access("/usr/bin/dbus-daemon", X_OK) == 0 ? nil : "dbus-daemon is not installed: make deps"
    }()

    /// Starts the bus, without a logind.
    ///
    /// - Parameter guarded: runs what makes a process, where that must not happen at any time.
    package init(guarded: (() throws -> Void) throws -> Void = { try $0() }) throws {
        var template = Array((NSTemporaryDirectory() + "tp-bus-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw MockTrouble("mkdtemp: \(errno)") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        chmod(folder, 0o755)
        try Driver.bus.replacingOccurrences(of: "@F", with: folder)
            .write(toFile: folder + "/bus.conf", atomically: false, encoding: .utf8)
        try Driver.program.write(toFile: folder + "/driver.py", atomically: false, encoding: .utf8)
        var child: Child?
        try guarded { [folder] in
            child = try Child(["/usr/bin/python3", folder + "/driver.py", folder], in: folder)
        }
        guard let child else { throw MockTrouble("no process was made") }
        (pid, input, output) = (child.pid, child.input, child.output)
        _ = try answer()
    }

    deinit {
        close(input)
        var status: Int32 = 0
        var tries = 0
        while waitpid(pid, &status, WNOHANG) == 0 {
            tries += 1
            if tries == 500 { kill(pid, SIGKILL) }
            usleep(10_000)
        }
        close(output)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Runs Python on the other side; what it assigns to `ret` comes back as JSON.
    @discardableResult
    package func run(_ python: String) throws -> String {
        let line = try JSONSerialization.data(withJSONObject: python, options: .fragmentsAllowed) + [10]
        try line.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = write(input, bytes.baseAddress! + sent, bytes.count - sent)
                guard count > 0 else { throw MockTrouble("the mock is gone: \(python)") }
                sent += count
            }
        }
        return try answer()
    }

    private func answer() throws -> String {
        while true {
            if let end = rest.firstIndex(of: 10) {
                let line = Data(rest[..<end])
                rest.removeFirst(end + 1)
                let object = try JSONSerialization.jsonObject(with: line) as? [String: Any] ?? [:]
                if let error = object["error"] { throw MockTrouble("\(error)") }
                let value = try JSONSerialization.data(withJSONObject: object["ok"] ?? 0, options: .fragmentsAllowed)
                return String(decoding: value, as: UTF8.self)
            }
            var ready = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            guard poll(&ready, 1, 20_000) > 0 else { throw MockTrouble("the mock does not answer") }
            var piece = [UInt8](repeating: 0, count: 4096)
            let count = read(output, &piece, piece.count)
            guard count > 0 else {
                let log = (try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? ""
                throw MockTrouble("the mock ended: \(log)")
            }
            rest += piece[..<count]
        }
    }

    // MARK: What is done most

    /// Starts logind; it waits so long before the machine sleeps.
    package func startLogind(delay: Duration = .seconds(5), sleeping: Bool = false) throws {
        let microseconds = delay.components.seconds * 1_000_000 + delay.components.attoseconds / 1_000_000_000_000
        try run("start_logind(\(microseconds), \(sleeping ? "True" : "False"))")
    }

    /// The machine is about to sleep, or has woken.
    package func sleep(_ begins: Bool) throws { try run("sleep(\(begins ? "True" : "False"))") }

    /// How many keep the machine from sleeping at once.
    package var inhibitors: Int { get throws { Int(try run("ret = len(mockobject.inhibitors)")) ?? -1 } }

    /// What the session says about its lock.
    package func hint(_ session: String, _ locked: Bool) throws {
        try run("hint('\(session)', \(locked ? "True" : "False"))")
    }
}

/// Something that keeps the mock from its work.
package struct MockTrouble: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

/// A process with pipes to its standard input and from its output; what it complains of goes into the file `log`.
private struct Child {
    let pid: pid_t
    let input: Int32
    let output: Int32

    init(_ words: [String], in folder: String) throws {
        var (to, from): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        guard pipe(&to) == 0, pipe(&from) == 0 else { throw MockTrouble("no pipe: \(errno)") }
        for end in to + from { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, to[0], 0)
        posix_spawn_file_actions_adddup2(&actions, from[1], 1)
        let log = folder == "/tmp" ? "/dev/null" : folder + "/log"
        posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(0x80 | 0x08))  // SETSID, SETSIGMASK
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        let error = posix_spawn(&pid, words[0], &actions, &attributes, &arguments, environ)
        close(to[0])
        close(from[1])
        guard error == 0 else {
            close(to[1])
            close(from[0])
            throw MockTrouble("\(words[0]): \(String(cString: strerror(error)))")
        }
        (self.pid, input, output) = (pid, to[1], from[0])
    }
}
