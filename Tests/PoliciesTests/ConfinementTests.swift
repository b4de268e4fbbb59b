// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

/// What a policy's process may do, by what it reports of its own attempts and by what /proc says of it.
struct ConfinementTests {
    private let nobody: UInt32 = 65534

    /// One attempt: from a constructor (1) or when asked (2), what, and the error that it met; 0 for none.
    private struct Attempt: Hashable, CustomStringConvertible {
        var when: UInt32
        var what: String
        var error: Int32
        var description: String { "\(when): \(what): \(Errno(rawValue: error))" }
    }

    private func attack(_ change: (inout HostProcess.Settings) -> Void = { _ in }) throws -> [Attempt] {
        let folder = try Libraries.makeFolder("kept")
        try File.write(folder + "/secret.so", "what the supervisor keeps", mode: 0o666)
        // A folder that the library names is no way to what else lies in it.
        let library = try Libraries.path("attacker.c", ["-Wl,-rpath,/etc:\(folder):/", "-pthread"])
        let host = try Hosts.start(library) {
            $0.environment = ["TORPOR_TEST_SECRET=\(folder)/secret.so", "LD_LIBRARY_PATH=\(folder)"]
            change(&$0)
        }
        let answer = try host.ask([Hosts.event(TORPOR_EVENT_STARTED)], deadline: Hosts.patience)
        #expect(try File.readString(folder + "/secret.so") == "what the supervisor keeps")
        return answer.advice.map { Attempt(when: $0.kind, what: $0.reason, error: Int32(bitPattern: $0.value)) }
    }

    private func check(_ attempts: [Attempt]) {
        // What is allowed while a library is opened, and no longer.
        let early: Set<String> = ["later libraries", "code"]
        for attempt in attempts {
            if attempt.what.hasPrefix("allowed: ") || (attempt.when == 1 && early.contains(attempt.what)) {
                #expect(attempt.error == 0, "\(attempt)")
            } else {
                // By what forbids it, not because of a mistake in the attempt.
                let error = Errno(rawValue: attempt.error)
                #expect([.notPermitted, .permissionDenied, .noFunction].contains(error), "\(attempt)")
            }
        }
        for when: UInt32 in [1, 2] {
            let made = attempts.filter { $0.when == when }
            #expect(made.count == 67, "\(made.count) attempts were made")
            func error(_ what: String) -> Errno? { made.first { $0.what == what }.map { Errno(rawValue: $0.error) } }
            // Each by what is there against it, not by chance.
            #expect(error("read /etc/shadow") == .permissionDenied)
            #expect(error("read /etc/passwd") == .permissionDenied)
            #expect(error("read secret") == .permissionDenied)
            #expect(error("write secret") == .notPermitted)
            #expect(error("list /") == .permissionDenied)
            #expect(error("make /tmp/torpor-attack") == .notPermitted)
            #expect(error("socket tcp") == .notPermitted)
            #expect(error("connect tcp") == .notPermitted)
            #expect(error("send descriptor") == .notPermitted)
            #expect(error("kill parent") == .notPermitted)
            #expect(error("trace parent") == .notPermitted)
            #expect(error("fork") == .notPermitted)
            #expect(error("clone3") == .noFunction)
            #expect(error("thread") == .notPermitted)
            #expect(error("execute /bin/true") == .notPermitted)
            #expect(error("io_uring") == .notPermitted)
        }
        #expect(!File.exists("/tmp/torpor-attack"))
        #expect(!File.exists("/usr/lib/torpor-attack"))
    }

    @Test func aPolicyGetsNowhere() throws { check(try attack()) }

    @Test(.enabled(if: Users.isRoot, "only root can become another user")) func norDoesItAsAnotherUser() throws {
        check(
            try attack {
                $0.user = nobody
                $0.group = nobody
            }
        )
    }

    /// Fields of /proc/PID/status.
    private func status(_ pid: Int32) throws -> [String: String] {
        let lines = try File.readString("/proc/\(pid)/status").split(separator: "\n")
        return Dictionary(
            lines.compactMap { line in
                let parts = line.split(separator: ":", maxSplits: 1)
                guard parts.count == 2 else { return nil }
                return (
                    String(parts[0]),
                    parts[1].split(whereSeparator: { $0 == "\t" || $0 == " " }).joined(separator: " ")
                )
            },
            uniquingKeysWith: { $1 }
        )
    }

    @Test func theKernelSaysTheSame() throws {
        // What this process has open by carelessness does not reach a policy.
        let stray = try Descriptor.duplicate(2, minimum: 200)
        try Descriptor.setCloseOnExec(stray.raw, false)
        let host = try Hosts.start(try Libraries.path("echo.c"))
        stray.close()
        let status = try status(host.pid)
        #expect(status["NoNewPrivs"] == "1")
        #expect(status["Seccomp"] == "2")
        #expect(status["Seccomp_filters"] == nil || status["Seccomp_filters"] == "2")
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] { #expect(status[set] == "0000000000000000", "\(set)") }
        if Users.isRoot { #expect(status["CapBnd"] == "0000000000000000") }
        #expect(status["Threads"] == "1")
        // Nobody but root may look into it.
        if Users.isRoot {
            #expect(Set(try File.list("/proc/\(host.pid)/fd")) == ["0", "1", "2", "3"])
            #expect(try File.readLink("/proc/\(host.pid)/fd/0") == "/dev/null")
            #expect(try File.readLink("/proc/\(host.pid)/fd/3").hasPrefix("socket:"))
        } else {
            #expect(throws: Errno.permissionDenied) { try File.list("/proc/\(host.pid)/fd") }
        }
        let limits = try File.readString("/proc/\(host.pid)/limits").split(separator: "\n").map {
            $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        }
        for limit in [
            "Max address space 268435456 268435456 bytes", "Max core file size 0 0 bytes", "Max file size 0 0 bytes",
            "Max open files 32 32 files", "Max processes 0 0 processes", "Max locked memory 0 0 bytes",
        ] { #expect(limits.contains(limit), "\(limit)") }
    }

    @Test(.enabled(if: Users.isRoot, "only root can become another user")) func itBecomesAnotherUser() throws {
        // The folder is closed to that user: the library comes by its descriptor.
        let folder = try Libraries.makeFolder("closed")
        try File.setMode(folder, 0o700)
        try copyFile(try Libraries.path("echo.c"), to: folder + "/libecho.so")
        let host = try Hosts.start(folder + "/libecho.so") {
            $0.user = nobody
            $0.group = nobody
        }
        let status = try status(host.pid)
        #expect(status["Uid"] == "65534 65534 65534 65534")
        #expect(status["Gid"] == "65534 65534 65534 65534")
        #expect(status["Groups"] == nil || status["Groups"] == "")
        #expect(host.description.confinement == [.files, .systemCalls, .user])
        let answer = try host.ask([Hosts.event(TORPOR_EVENT_STATE, app: 0)], deadline: Hosts.patience)
        #expect(answer.advice.first?.reason == "web")

        try File.setMode(folder + "/libecho.so", 0o600)
        let failure = try #require(throws: PolicyFailure.self) {
            _ = try Hosts.start(folder + "/libecho.so") {
                $0.user = nobody
                $0.group = nobody
            }
        }
        #expect("\(failure)".contains("may not be read by user 65534, whom policies run as: chmod a+r "))
    }

    @Test(arguments: [
        ("landlock", PolicyConfinement.systemCalls), ("seccomp", .files), ("landlock,seccomp", PolicyConfinement([])),
    ])
    func whatAKernelDoesNotHaveIsSaid(missing: String, left: PolicyConfinement) throws {
        let launcher = Libraries.folder + "/without-\(missing.count)"
        try Libraries.compile("gcc", ["-Wall", "-Wextra", Libraries.sources + "without.c", "-o", launcher])
        let host = try Hosts.start(try Libraries.path("echo.c")) {
            $0.program = launcher
            $0.environment = ["TORPOR_TEST_WITHOUT=\(missing)", "TORPOR_TEST_HOST=\(Hosts.program)"]
        }
        #expect(host.description.confinement == left)
        let answer = try host.ask([Hosts.event(TORPOR_EVENT_STATE, app: 0)], deadline: Hosts.patience)
        #expect(answer.advice.first?.reason == "web")
        #expect(try status(host.pid)["NoNewPrivs"] == "1")
    }

    @Test func aHostEndsWithWhoeverStartedIt() throws {
        let script = try File.readString(Libraries.sources + "orphan.py")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [
            "-c", script, Hosts.program, try Libraries.path("constructor.c", ["-DHARM=3"]),
            try Libraries.path("echo.c"),
        ]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let pids = text.split(separator: " ").compactMap { Int32($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        try #require(pids.count == 2, "\(text)")
        for pid in pids {
            // It may have ended already.
            guard let pidfd = try? Pidfd.open(pid) else { continue }
            #expect(try Descriptor.wait(pidfd.raw, timeout: Hosts.patience), "\(pid) lives on")
        }
    }
}

/// Copies a file by a program of its own: one that this process writes is open in every child that is made meanwhile.
func copyFile(_ source: String, to place: String) throws {
    let copy = try Process.run(URL(fileURLWithPath: "/bin/cp"), arguments: [source, place])
    copy.waitUntilExit()
    try #require(copy.terminationStatus == 0, "cp \(source) \(place)")
}
