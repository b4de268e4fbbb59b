// SPDX-License-Identifier: Apache-2.0

import Configuration
import Foundation
import Linux
import Testing

@Suite("Files of a configuration that every user can change") struct ExposureTests {
    /// A folder of this test, with a configuration that includes another one. `body` gets the folder's path.
    private static func withFiles(_ body: (String) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "exposure-\(UUID().uuidString)"
        try File.makeDirectories(folder + "/conf.d", mode: 0o755)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try File.write(folder + "/torpor.toml", "include = [\"conf.d/*.toml\"]\n")
        try File.write(folder + "/conf.d/web.toml", "[apps.web]\nexec = [\"/bin/true\"]\n")
        for path in ["/torpor.toml", "/conf.d/web.toml"] { try File.setMode(folder + path, 0o644) }
        try body(try File.realPath(folder))
    }

    private static func warnings(_ folder: String) throws -> [String] {
        try ConfigurationLoader.load(path: folder + "/torpor.toml", environment: [:]).get().warnings.map(\.description)
    }

    @Test("a file, its folder, and a folder above are named, each once")
    func places() throws {
        try Self.withFiles { folder in
            #expect(try Self.warnings(folder) == [])
            for (path, file, text) in [
                ("/conf.d/web.toml", "/conf.d/web.toml", "every user can change it: ‘chmod o-w @D/conf.d/web.toml’"),
                ("/conf.d", "/conf.d/web.toml", "every user can replace it, since everyone may write to @D/conf.d: "),
                ("", "/torpor.toml", "every user can replace it, since everyone may write to @D: ‘chmod o-w @D’"),
            ] {
                let mode = try File.status(folder + path).mode
                try File.setMode(folder + path, mode | 0o002)
                let found = try Self.warnings(folder)
                let wanted = text.replacing("@D", with: folder)
                #expect(found.count == 1, "\(found)")
                #expect(
                    found.first?.hasPrefix("\(folder)\(file): warning: ") == true && found[0].contains(wanted),
                    "\(found)"
                )
                try File.setMode(folder + path, mode)
            }
        }
    }

    @Test("a configuration of root that another user owns, or whose folder he owns, is told")
    func owner() throws {
        try Self.withFiles { folder in
            let file = folder + "/conf.d/web.toml"
            if Users.isRoot { try File.setOwner(file, uid: 65_534, gid: 65_534) }
            #expect(FileExposure(of: file, isForRoot: false) == nil)
            let found = try #require(FileExposure(of: file, isForRoot: true))
            #expect(found.path == file && found.sentence.contains("can change it, and so run programs as root"))
            guard Users.isRoot else { return }
            #expect(try Self.warnings(folder).count == 1)
            try File.setOwner(file, uid: 0, gid: 0)
            try File.setOwner(folder + "/conf.d", uid: 65_534, gid: 65_534)
            let replaced = try #require(FileExposure(of: file, isForRoot: true))
            #expect(replaced.path == folder + "/conf.d" && replaced.sentence.contains("can replace it"))
            try File.setOwner(folder + "/conf.d", uid: 0, gid: 0)
            #expect(FileExposure(of: file, isForRoot: true) == nil)
        }
    }

    @Test("in a folder with the sticky bit no user can replace a file of another one")
    func sticky() throws {
        try Self.withFiles { folder in
            try File.setMode(folder, 0o1777)
            #expect(try Self.warnings(folder) == [])
        }
    }

    @Test("a folder that include lists counts without files too")
    func empty() throws {
        try Self.withFiles { folder in
            try File.remove(folder + "/conf.d/web.toml")
            try File.setMode(folder + "/conf.d", 0o777)
            let found = try Self.warnings(folder)
            #expect(found.count == 1 && found[0].contains("every user can add files here: "), "\(found)")
        }
    }
}
