// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Linux

@Suite("Replicas of folders")
struct FolderReplicaTests {
    /// Makes a folder `from`, an empty one `to`, and runs the body with their parent.
    private static func with(_ script: String, _ body: (String) throws -> Void) throws {
        var template = Array((NSTemporaryDirectory() + "replica-XXXXXX").utf8CString)
        _ = try #require(mkdtemp(&template))
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { _ = try? Process.run(URL(filePath: "/bin/rm"), arguments: ["-rf", folder]).waitUntilExit() }
        _ = try run(folder, "mkdir from to; cd from; \(script)")
        try body(folder)
    }

    private static func run(_ folder: String, _ script: String) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/bash")
        process.currentDirectoryURL = URL(filePath: folder)
        process.arguments = ["-ec", script]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(script)")
        return String(decoding: bytes, as: UTF8.self)
    }

    /// All that there is in a folder, as another program sees it.
    private static func listing(_ folder: String) throws -> String {
        try run(
            folder,
            #"""
            python3 - <<'END'
            import hashlib, os, stat
            first = {}
            def show(path, name):
                s = os.lstat(path)
                line = [repr(name), oct(s.st_mode), s.st_uid, s.st_gid, s.st_mtime_ns]
                for a in sorted(os.listxattr(path, follow_symlinks=False)):
                    line += [a, os.getxattr(path, a, follow_symlinks=False)]
                if stat.S_ISREG(s.st_mode):
                    line += [s.st_size, hashlib.sha256(open(path, "rb").read()).hexdigest()]
                    line += [s.st_nlink, first.setdefault(s.st_ino, name)]
                if stat.S_ISLNK(s.st_mode): line.append(os.readlink(path))
                print(*line)
            show(b".", b".")
            for where, folders, files in os.walk(b"."):
                folders.sort()
                for name in sorted(folders + files): show(where + b"/" + name, where + b"/" + name)
            END
            """#
        )
    }

    private static func replica(_ folder: String) throws -> FolderReplica {
        FolderReplica(of: try Folder(folder + "/from"), in: try Folder(folder + "/to"))
    }

    /// A file of each kind, with what programs may give it.
    private static let tree = #"""
        mkdir -p a/b/c empty 'with space'; echo one > a/one; echo two > a/b/two; : > empty-file
        ln a/one a/b/c/one-again; ln a/one "with space/third"
        ln -s ../../elsewhere a/link; ln -s /etc/passwd a/b/outside; ln -s nowhere dangling
        mkfifo a/fifo; touch "$(printf 'n\nl\xff')" ./-rf .hidden
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("a/socket")'
        printf begin > sparse; truncate -s 64M sparse; printf end >> sparse
        head -c 3M /dev/urandom > large
        chmod 4755 a/one; chmod 2750 a/b; chmod 1777 empty; chmod 400 a/b/two; chmod 600 a/fifo
        python3 -c 'import os
        try:
            os.setxattr("a/one", "user.mark", b"\0value"); os.setxattr("a/b", "user.empty", b"")
            os.setxattr(".", "user.top", b"x" * 300)
        except OSError: pass'
        [ "$(id -u)" != 0 ] || { chown 1234:2345 a/b/two; chown -h 3:4 dangling; chown 12:13 a/fifo; }
        touch -h -d '1969-12-31 23:59:58.25 UTC' dangling; touch -d '2001-02-03 04:05:06.789012345 UTC' a/b/two a/b a
        chmod 750 .; touch -d 2002-02-02 .
        """#

    @Test("a replica has all of it, follows no link, and takes no more room")
    func whole() throws {
        try Self.with(Self.tree) { folder in
            var replica = try Self.replica(folder)
            try replica.make()
            try replica.compare()
            #expect(try Self.listing(folder + "/from") == Self.listing(folder + "/to"))
            #expect(replica.files == 20 && replica.bytes < 8 << 20, "\(replica.files), \(replica.bytes)")
            let sparse = try File.status(folder + "/to/sparse")
            #expect(sparse.size == 64 << 20 | 3 && sparse.allocated < 1 << 20, "\(sparse)")
        }
    }

    @Test(
        "whatever differs is found",
        arguments: [
            "printf X | dd of=large bs=1 seek=2500000 conv=notrunc status=none; touch -r ../from/large large",
            "printf X | dd of=sparse bs=1 seek=33333333 conv=notrunc status=none; touch -r ../from/sparse sparse",
            "truncate -s -1 sparse; touch -r ../from/sparse sparse", "chmod 755 a/one", "chmod 700 a/b", "chmod 755 .",
            "touch a/b/two", "touch -h dangling", "touch a", "rm .hidden", "touch more", "rm -r empty; touch empty",
            "ln -sfn elsewhere a/link; touch -h -r ../from/a/link a/link; touch -r ../from/a a",
            "cp -p a/one new; mv new a/one; touch -r ../from/a a; touch -r ../from .",
            "rm a/fifo; touch a/fifo; touch -r ../from/a a",
        ]
    )
    func differences(_ change: String) throws {
        try Self.with(Self.tree) { folder in
            var replica = try Self.replica(folder)
            try replica.make()
            _ = try Self.run(folder + "/to", change)
            #expect(throws: ReplicaError.self) { try replica.compare() }
        }
    }

    @Test("other attributes or owners are found", .enabled(if: Users.isRoot, "only root changes owners"))
    func owners() throws {
        for change in ["chown 1 a/b/two", "chown :1 a/b/two", "chown -h 5 dangling", "chown 1 ."] {
            try Self.with(Self.tree) { folder in
                var replica = try Self.replica(folder)
                try replica.make()
                _ = try Self.run(folder + "/to", change)
                #expect(throws: ReplicaError.self, "\(change)") { try replica.compare() }
            }
        }
    }

    @Test("devices, and folders without end, are not copied, and it says which", .enabled(if: Users.isRoot, "mknod"))
    func refused() throws {
        try Self.with("mkdir d; mknod d/null c 1 3") { folder in
            var replica = try Self.replica(folder)
            let error = #expect(throws: ReplicaError.self) { try replica.make() }
            #expect(error?.description.hasPrefix("d/null: is a device") == true, "\(String(describing: error))")
        }
        let deep = "d=.; for i in $(seq 20); do d=$d/\(Array(repeating: "x", count: 21).joined(separator: "/")); done"
        try Self.with("\(deep); mkdir -p $d") { folder in
            var replica = try Self.replica(folder)
            let error = #expect(throws: ReplicaError.self) { try replica.make() }
            #expect(error?.description.contains("lies in more than 400 folders") == true)
        }
    }
}
