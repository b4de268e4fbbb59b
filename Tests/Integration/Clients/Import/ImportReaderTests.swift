// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing

@Suite("What torpor import and init write has no reader who could not read every source")
struct ImportReaderTests {
    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = try File.realPath(Daemon.makeFolder())
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, text) in [
            "supervisor/supervisord.conf": "[program:main]\ncommand=/bin/cat\n[include]\nfiles = conf.d/*.conf\n",
            "supervisor/conf.d/a.conf": "[program:a]\ncommand=/bin/cat\n",
            "supervisor/conf.d/b.conf": "[program:b]\ncommand=/bin/cat\nenvironment=PASSWORD=\"hidden\"\n",
            "units/web.service": "[Service]\nExecStart=/bin/cat\n",
            "units/web.service.d/x.conf": "[Service]\nEnvironment=PASSWORD=hidden\n",
            "shop/compose.yml": "services:\n  web:\n    image: web\n    environment:\n      PASSWORD: ${PASSWORD}\n",
            "shop/.env": "PASSWORD=hidden\n",
        ] {
            let path = folder + "/" + name
            try File.makeDirectories(File.parent(of: path) ?? "/")
            try File.write(path, text)
        }
        try body(folder)
    }

    private func torpor(_ words: [String]) throws {
        let (code, output) = try Spawn.run([Built.path("torpor")] + words)
        #expect(code == 0, "\(words): \(output)")
    }

    @Test(
        "each file that the import reads counts, and each folder that contains one",
        arguments: [
            ("supervisor/supervisord.conf", "supervisor/supervisord.conf", 0o600),
            ("supervisor/supervisord.conf", "supervisor/conf.d/b.conf", 0o600),
            ("supervisor", "supervisor/conf.d/b.conf", 0o400), ("supervisor/conf.d", "supervisor/conf.d/b.conf", 0o600),
            ("supervisor/supervisord.conf", "supervisor/conf.d", 0o700), ("supervisor", "supervisor", 0o700),
            ("units/web.service", "units/web.service.d/x.conf", 0o600), ("units", "units/web.service.d/x.conf", 0o600),
            ("units", "units/web.service.d", 0o700), ("shop/compose.yml", "shop/.env", 0o600),
            ("shop", "shop/.env", 0o600),
        ]
    )
    func mode(source: String, closed: String, mode: Int) throws {
        try withFolder { folder in
            let (open, closedFile) = (folder + "/open.toml", folder + "/private.toml")
            try torpor(["import", folder + "/" + source, "--output", open])
            #expect(try File.status(open).mode & 0o777 == 0o644)
            try File.setMode(folder + "/" + closed, UInt32(mode))
            try torpor(["import", folder + "/" + source, "--output", closedFile])
            #expect(try File.status(closedFile).mode & 0o777 == 0o600)
            if closed.contains("b.conf") { #expect(try File.readString(closedFile).contains("hidden")) }
            // A file that exists loses the readers whom the sources do not have.
            try torpor(["import", folder + "/" + source, "--output", open, "--force"])
            #expect(try File.status(open).mode & 0o777 == 0o600)
        }
    }

    @Test("a folder that closes the result as well as the sources does not count, and init does the same")
    func inside() throws {
        try withFolder { folder in
            let shop = folder + "/supervisor"
            try File.setMode(shop, 0o700)
            try torpor(["init", "--yes", shop])
            #expect(try File.status(shop + "/torpor.toml").mode & 0o777 == 0o644)
            try File.setMode(shop + "/conf.d/b.conf", 0o600)
            try torpor(["init", "--yes", "--force", shop])
            #expect(try File.status(shop + "/torpor.toml").mode & 0o777 == 0o600)
        }
    }

    @Test("groups and owners are compared", .enabled(if: Users.isRoot))
    func owners() throws {
        try withFolder { folder in
            let (source, target) = (folder + "/supervisor/conf.d/b.conf", folder + "/torpor.toml")
            try File.setMode(source, 0o640)
            let words = ["import", folder + "/supervisor", "--output", target, "--force"]
            for (group, mode) in [(UInt32(0), UInt32(0o640)), (1, 0o600)] {
                try File.setOwner(source, uid: nil, gid: group)
                try? File.remove(target)
                try torpor(words)
                #expect(try File.status(target).mode & 0o777 == mode, "group \(group)")
            }
            try File.setOwner(target, uid: 1, gid: 1)
            try torpor(words)
            let status = try File.status(target)
            #expect(status.uid == 0 && status.gid == 0 && status.mode & 0o777 == 0o600, "\(status)")
        }
    }
}
