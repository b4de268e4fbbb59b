// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Processes
import Testing

/// A process that neither the test nor the keeper is the parent of: its parent is a script, which reaps it when it is
/// told to.
final class Foster {
    let identity: Identity
    let pidfd: Descriptor
    private let parent: Process
    private let commands = Pipe()
    private let door: Descriptor

    private static let script = """
        import os, sys
        child = os.fork()
        if child == 0:
            os.setsid()
            with open(sys.argv[1]) as door:
                what = int(door.readline())
            if what < 0: os.kill(os.getpid(), -what)
            os._exit(what)
        print(child, flush=True)
        sys.stdin.readline()
        os.waitpid(child, 0)
        sys.stdin.readline()
        """

    init(folder: String) throws {
        let path = folder + "/foster-\(UUID().uuidString.prefix(8))"
        try File.makeFIFO(path)
        door = try File.open(path, .readWrite)
        let output = Pipe()
        parent = Process()
        parent.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        parent.arguments = ["-c", Self.script, path]
        parent.standardInput = commands
        parent.standardOutput = output
        try parent.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        let pid = try #require(Int32(line.trimmingCharacters(in: .whitespacesAndNewlines)))
        pidfd = try Pidfd.open(pid)
        identity = Identity(pid: pid, startTime: try ProcFS.stat(pid).startTime)
    }

    /// It exits with this status, or, below 0, by this signal; returns when it is a zombie.
    func end(_ status: Int32) throws {
        try Descriptor.writeAll(door.raw, Array("\(status)\n".utf8))
        try #require(try Descriptor.wait(pidfd.raw, timeout: .seconds(60)))
    }

    /// Its parent waits for it.
    func reap() throws { try commands.fileHandleForWriting.write(contentsOf: Data("reap\n".utf8)) }

    deinit {
        try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
        try? commands.fileHandleForWriting.close()
        parent.waitUntilExit()
    }
}
