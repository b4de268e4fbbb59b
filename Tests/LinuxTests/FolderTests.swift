// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Linux

/// Trees of files that somebody hostile may have made.
@Suite("Folders that are emptied, copied and measured")
struct FolderTests {
    private static func with(_ body: (String) throws -> Void) throws {
        var template = Array((NSTemporaryDirectory() + "folder-XXXXXX").utf8CString)
        _ = try #require(mkdtemp(&template))
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { _ = try? Process.run(URL(filePath: "/bin/rm"), arguments: ["-rf", folder]).waitUntilExit() }
        try body(folder)
    }

    private static func shell(_ folder: String, _ script: String) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/bash")
        process.currentDirectoryURL = URL(filePath: folder)
        process.arguments = ["-ec", script]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(script)")
    }

    @Test("all of a folder goes, whatever rights and names it has, and nothing that its links lead to")
    func emptied() throws {
        try Self.with { folder in
            try Self.shell(
                folder,
                """
                mkdir -p out/in tmp/a/b/c tmp/shut; echo kept > out/in/file
                ln -s ../out tmp/link; ln -s ../../out/in/file tmp/a/link; ln -s / tmp/a/b/root; mkfifo tmp/fifo
                echo x > tmp/shut/x; chmod 0 tmp/shut; echo x > tmp/a/b/x; chmod 500 tmp/a/b
                touch "tmp/$(printf 'a\\nb\\xff')" "tmp/-rf" tmp/.hidden; mkdir tmp/$(printf '\\xc3\\x28'); ln out/in/file tmp/hard
                """
            )
            let work = TreeWork()
            let emptied = try Folder(folder + "/tmp").empty(work)
            #expect(emptied.left == 0 && emptied.first == nil, "\(emptied)")
            #expect(try File.list(folder + "/tmp").isEmpty)
            #expect(try File.readString(folder + "/out/in/file") == "kept\n")
            #expect(work.entries >= 12)
        }
    }

    @Test("a folder deeper than any stack goes too")
    func deep() throws {
        try Self.with { folder in
            let name = String(repeating: "d", count: 100)
            try File.makeDirectory(folder + "/tmp")
            var at = try Folder(folder + "/tmp")
            for _ in 0..<3000 {
                try at.makeFolder(FileName(name), mode: 0o700)
                at = try at.folder(FileName(name))
            }
            let emptied = try Folder(folder + "/tmp").empty(TreeWork())
            #expect(emptied.left == 0 && emptied.removed == 3000, "\(emptied)")
            #expect(try File.list(folder + "/tmp").isEmpty)
        }
    }

    @Test("work that is given up ends at the next file")
    func cancelled() throws {
        try Self.with { folder in
            try Self.shell(folder, "mkdir tmp; touch tmp/{1..20}")
            let work = TreeWork()
            work.cancel()
            let error = #expect(throws: TreeError.self) { try Folder(folder + "/tmp").empty(work) }
            #expect(error?.errno == .canceled)
            #expect(try File.list(folder + "/tmp").count == 20)
        }
    }

    @Test("what is missing is copied, nothing is overwritten, and no link of the copy is followed")
    func copied() throws {
        try Self.with { folder in
            try Self.shell(
                folder,
                """
                mkdir -p from/sub/deep from/trap to/sub out draft; echo new > from/a; echo new > from/sub/b
                echo bytes > from/sub/deep/c; chmod 4755 from/a; ln -s ../a from/sub/link; mkfifo from/fifo
                echo new > from/trap/x; ln -s ../out to/trap; echo old > to/sub/b
                echo new > "from/$(printf '\\xff')"
                """
            )
            let copied = try Folder(folder + "/to").copyMissing(
                from: Folder(folder + "/from"),
                draft: Folder(folder + "/draft"),
                TreeWork()
            )
            #expect(copied.made == 5 && copied.special == 1 && copied.firstSpecial == "fifo", "\(copied)")
            #expect(try File.readString(folder + "/to/a") == "new\n")
            #expect(try File.status(folder + "/to/a").mode == 0o755)
            #expect(try File.readString(folder + "/to/sub/b") == "old\n")
            #expect(try File.readString(folder + "/to/sub/deep/c") == "bytes\n")
            #expect(try File.readLink(folder + "/to/sub/link") == "../a")
            #expect(try File.list(folder + "/out").isEmpty && File.list(folder + "/draft").isEmpty)
            // Again: nothing is left to be done.
            let again = try Folder(folder + "/to").copyMissing(
                from: Folder(folder + "/from"),
                draft: Folder(folder + "/draft"),
                TreeWork()
            )
            #expect(again.made == 0 && again.bytes == 0, "\(again)")
        }
    }

    @Test("what was used longest ago goes first, until there is enough")
    func oldest() throws {
        try Self.with { folder in
            try Self.shell(
                folder,
                """
                mkdir -p c/sub out; for n in 1 2 3 4; do head -c 8192 /dev/zero > c/sub/$n; touch -d "2020-01-0$n" c/sub/$n; done
                touch -a -d 2024-01-01 c/sub/1; echo kept > out/file; ln -s ../out c/link; ln out/file c/hard
                touch -h -d 2000-01-01 c/link; touch -d 2000-01-01 out/file
                """
            )
            let freed = try Folder(folder + "/c").removeOldest(bytes: 10_000, TreeWork())
            #expect(freed.files == 2 && freed.bytes >= 10_000, "\(freed)")
            // 1 was read later than all others were written.
            #expect(try File.list(folder + "/c/sub").sorted() == ["1", "4"])
            #expect(File.exists(folder + "/out/file"))
            #expect(try Folder(folder + "/c").measure(TreeWork()).entries == 5)
        }
    }

    @Test("another owner gets what the first one had, and nothing else", .enabled(if: Users.isRoot))
    func given() throws {
        try Self.with { folder in
            try Self.shell(
                folder,
                """
                mkdir -p d/sub; echo a > d/sub/a; echo b > d/b; echo root > d/root; ln -s /etc/hostname d/link
                chown -h -R 4711:4711 d; chown 0:0 d/root; echo other > other; chown 4711 other; ln other d/hard
                """
            )
            let host = try File.status("/etc/hostname")
            let given = try Folder(folder + "/d").give(from: 4711, to: (4712, 4713), TreeWork())
            #expect(given.left == 1 && given.first?.path == "hard", "\(given)")
            for name in ["d", "d/sub", "d/sub/a", "d/b", "d/link"] {
                let status = try File.status(folder + "/" + name, followLinks: false)
                #expect(status.uid == 4712 && status.gid == 4713, "\(name)")
            }
            #expect(try File.status(folder + "/d/root").uid == 0 && File.status(folder + "/other").uid == 4711)
            #expect(try File.status("/etc/hostname") == host)
        }
    }
}
