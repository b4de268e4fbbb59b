// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux

/// The two sockets of a journal, as a daemon in a mount namespace of its own finds them under /run/systemd: this test
/// reads what a journal would be sent, at once, since ten entries are all that may wait for it.
final class ScriptedJournal: @unchecked Sendable {
    /// An entry that came in the native protocol.
    typealias Entry = [String: String]

    /// A stream: the header's lines, and what came after them.
    struct Stream {
        fileprivate let socket: Descriptor
        fileprivate var bytes: [UInt8] = []

        private var lines: [Substring] {
            String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        }
        var identifier: Substring { lines.first ?? "" }
        var header: [Substring] { Array(lines.prefix(7)) }
        var text: [Substring] { Array(lines.dropFirst(7)).filter { !$0.isEmpty } }
    }

    private let folder: String
    private let datagrams: Descriptor
    private let listener: Descriptor
    private let lock = NSLock()
    private var streams: [Stream] = []
    private var entries: [Entry] = []
    private var isClosed = false

    /// Whether this machine lets a process have mounts of its own.
    static let isPossible =
        (try? Spawn.run(["/usr/bin/unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"]))?.code == 0

    /// What is started in place of torpord: it sees only these sockets in /run, and has a stream as standard error.
    var program: String { folder + "/torpord" }
    private var python: String { folder + "/launch.py" }

    /// - Parameters:
    ///   - hasSockets: whether the daemon finds them.
    ///   - reads: whether what comes is read before somebody asks for it.
    init(hasSockets: Bool = true, reads: Bool = true) throws {
        folder = try Daemon.makeFolder()
        try File.makeDirectory(folder + "/journal")
        datagrams = try Sockets.bindDatagram(path: folder + "/journal/socket")
        listener = try Sockets.listen(path: folder + "/journal/stdout")
        let launch = """
            import os, socket, subprocess, sys
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.connect("\(folder)/journal/stdout")
            s.sendall(b"torpord\\n\\n6\\n1\\n0\\n0\\n0\\n")
            subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
            os.makedirs("/run/systemd/journal")
            if \(hasSockets ? "True" : "False"):
                subprocess.run(["mount", "--bind", "\(folder)/journal", "/run/systemd/journal"], check=True)
            os.dup2(s.fileno(), 2)
            status = os.fstat(2)
            os.environ["JOURNAL_STREAM"] = "%d:%d" % (status.st_dev, status.st_ino)
            os.execv(sys.argv[1], sys.argv[1:])
            """
        let shell = """
            #!/bin/sh
            exec /usr/bin/unshare -m /usr/bin/python3 -S \(python) \(Built.path("torpord")) "$@"
            """
        try Spawn.lock.withLock {
            try File.write(python, launch)
            try File.write(program, shell, mode: 0o755)
        }
        try File.setMode(program, 0o755)
        guard reads else { return }
        Thread { [self] in
            while !lock.withLock({ isClosed }) {
                _ = try? Descriptor.wait(datagrams.raw, timeout: .milliseconds(5))
                lock.withLock { read() }
            }
        }.start()
    }

    /// Ends the reading, and removes everything.
    func close() {
        lock.withLock { isClosed = true }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Takes what has come.
    private func read() {
        while let socket = (try? Sockets.accept(listener.raw)).flatMap({ $0 }) {
            try? Descriptor.setNonBlocking(socket.raw)
            streams.append(Stream(socket: socket))
        }
        for index in streams.indices {
            let socket = streams[index].socket.raw
            while let bytes = (try? Descriptor.read(socket, maximum: 1 << 16)).flatMap({ $0 }), !bytes.isEmpty {
                streams[index].bytes += bytes
            }
        }
        while let message = (try? Sockets.receive(datagrams.raw, maximum: 1 << 18)).flatMap({ $0 }) {
            entries.append(Self.entry(message.bytes))
        }
    }

    /// What came about an app, the newest last.
    func entries(of app: String) -> [Entry] { all.filter { $0["TORPOR_APP"] == app } }

    /// Every entry, the newest last.
    var all: [Entry] {
        lock.withLock {
            read()
            return entries
        }
    }

    /// The streams of an identifier, the oldest first.
    func streams(of identifier: String) -> [Stream] {
        lock.withLock {
            read()
            return streams.filter { $0.identifier == identifier }
        }
    }

    private static func entry(_ bytes: [UInt8]) -> Entry {
        var entry: Entry = [:]
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = rest[..<end]
            rest = rest[(end + 1)...]
            if let equals = line.firstIndex(of: UInt8(ascii: "=")) {
                entry[String(decoding: line[..<equals], as: UTF8.self)] =
                    String(decoding: line[(equals + 1)...], as: UTF8.self)
            } else {
                let size = rest.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(8)
                entry[String(decoding: line, as: UTF8.self)] = String(decoding: rest.prefix(size), as: UTF8.self)
                rest = rest.dropFirst(size + 1)
            }
        }
        return entry
    }
}
