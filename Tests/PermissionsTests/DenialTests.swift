// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Permissions

@Suite("What the kernel says that it denied") struct DenialTests {
    private static func record(_ type: UInt16, _ fields: String) -> DenialRecord? {
        DenialRecord(type: type, Array("audit(1795962983.349:40): \(fields)\0".utf8))
    }

    private static func denied(_ fields: String) -> Denial? {
        guard case .denied(0x1_95ba_459b, let denial) = record(1423, "domain=195ba459b " + fields) else { return nil }
        return denial
    }

    /// Records as Linux 6.18 has written them.
    @Test(
        "Records are read, and said in words",
        arguments: [
            (
                "blockers=fs.write_file path=\"/dev/tty\" dev=\"devtmpfs\" ino=9",
                Denial(["fs.write_file"], .path("/dev/tty")), "write /dev/tty", "tty"
            ),
            (
                "blockers=fs.make_reg,fs.refer path=\"/usr/local\" dev=\"vda2\" ino=365",
                Denial(["fs.make_reg", "fs.refer"], .path("/usr/local")),
                "make a file in or move or link between folders: /usr/local", "files:/usr/local"
            ),
            (
                "blockers=fs.read_file path=\"/dev/video0\" dev=\"devtmpfs\" ino=9",
                Denial(["fs.read_file"], .path("/dev/video0")), "read /dev/video0", "camera"
            ),
            (
                "blockers=fs.read_dir path=2F736120622F0A dev=\"vda2\" ino=3",
                Denial(["fs.read_dir"], .path("/sa b/\n")), "list /sa b/\u{fffd}", "files:/sa b/\u{fffd}:ro"
            ),
            (
                "blockers=net.connect_tcp daddr=10.0.0.1 dest=25", Denial(["net.connect_tcp"], .port(25)),
                "connect to TCP port 25", "network"
            ),
            (
                "blockers=net.bind_tcp saddr=127.0.0.1 src=80", Denial(["net.bind_tcp"], .port(80)),
                "listen at TCP port 80", "network"
            ),
            (
                "blockers=scope.signal opid=1 ocomm=\"systemd\"", Denial(["scope.signal"], .process(1)),
                "signal process 1, which is outside", nil
            ),
            (
                "blockers=scope.abstract_unix_socket path=00666F6F",
                Denial(["scope.abstract_unix_socket"], .abstract("foo")),
                "connect to the abstract socket @foo, which is outside", nil
            ),
            (
                "blockers=ptrace opid=7 ocomm=\"a\"", Denial(["ptrace"], .process(7)),
                "trace process 7, which is outside", nil
            ),
            (
                "blockers=fs.change_topology name=\"/\" dev=\"tmpfs\" ino=1", Denial(["fs.change_topology"], .nothing),
                "change mounts", nil
            ),
            ("blockers=fs.of_later path=\"/x\"", Denial(["fs.of_later"], .path("/x")), "fs.of_later /x", "files:/x"),
        ] as [(String, Denial, String, String?)]
    )
    func words(_ fields: String, _ denial: Denial, _ text: String, _ permission: String?) {
        #expect(Self.denied(fields) == denial)
        #expect(denial.text == text)
        #expect(denial.permission == permission)
    }

    @Test("A domain begins with the process that restricted itself, and ends")
    func domains() {
        let made = "domain=a1 status=allocated mode=enforcing pid=286 uid=0 exe=\"/usr/torpor-keeper\" comm=\"k\""
        #expect(Self.record(1424, made) == .made(domain: 0xa1, process: 286, user: 0, program: "/usr/torpor-keeper"))
        #expect(Self.record(1424, "domain=a1 status=deallocated denials=3") == .gone(domain: 0xa1))
    }

    @Test(
        "What the kernel does not write so is no record",
        arguments: [
            (1423, ""), (1423, "domain=a1"), (1423, "blockers=fs.read_file path=\"/x\""),
            (1423, "domain=zz blockers=ptrace"), (1423, "domain=a1 blockers="), (1423, "domain=a1 blockers=FS.READ"),
            (1423, "domain=11112222333344445 blockers=ptrace"),
            (1424, "domain=a1 status=other pid=1 uid=0"), (1424, "domain=a1 status=allocated pid=1 exe=\"/x\""),
            (1424, "domain=a1 status=allocated pid=-1"), (1424, "domain=a1"),
            (1300, "domain=a1 blockers=ptrace"), (0, "domain=a1 blockers=ptrace"),
        ] as [(UInt16, String)]
    )
    func refused(_ type: UInt16, _ fields: String) { #expect(Self.record(type, fields) == nil) }

    @Test("A name makes no field, and a damaged or long one does no harm")
    func hostile() {
        // The kernel writes a name with a space or a quote in hexadecimal: these come from elsewhere.
        let fake = Self.denied("blockers=fs.read_file path=\"/a\" blockers=ptrace domain=ff path=\"/b\"")
        #expect(fake == Denial(["fs.read_file"], .path("/a")))
        for path in ["2F7", "2Fzz", "\"/x", "\"", ""] {
            #expect(Self.denied("blockers=fs.read_file path=\(path)")?.object == .nothing, "\(path)")
        }
        let long = Self.denied("blockers=fs.read_file path=\"/\(String(repeating: "x", count: 5000))\"")
        guard case .path(let path) = long?.object else { return #expect(Bool(false), "no path") }
        #expect(path.count == Denial.longestPath)
        #expect(long!.text.count < 300 && long!.permission!.count < 300)
        #expect(Denial(["fs.read_file"], .path("/a\u{1b}[2J\u{202e}b")).text == "read /a\u{fffd}[2J\u{fffd}b")
        for length in 0..<40 {
            _ = DenialRecord(type: 1423, Array("audit(1.2:3): domain=1 blockers=ptrace path=2F".utf8.prefix(length)))
            _ = DenialRecord(type: 1424, [UInt8](repeating: 0xff, count: length))
        }
    }

    @Test("A declaration covers what it would open, and no more")
    func covering() throws {
        var network = PermissionDeclaration(.network, purpose: "Why")
        network.ports = [443]
        let declared = [
            PermissionDeclaration(.files(path: "/srv/m*", isReadOnly: true), purpose: "Why"),
            PermissionDeclaration(.files(path: "/var/x", isReadOnly: false), purpose: "Why"),
            PermissionDeclaration(.device(.camera), purpose: "Why"), network,
        ]
        func names(_ blocker: String, _ object: Denial.Object) -> [String] {
            Denial([blocker], object).covering(declared).map(\.name)
        }
        #expect(names("fs.read_file", .path("/srv/media/a/b")) == ["files:/srv/m*:ro"])
        #expect(names("fs.write_file", .path("/srv/media/a/b")).isEmpty)
        #expect(names("fs.write_file", .path("/var/x")) == ["files:/var/x"])
        #expect(names("fs.write_file", .path("/var/xy")).isEmpty)
        #expect(names("fs.read_file", .path("/dev/video3")) == ["camera"])
        #expect(names("fs.read_file", .path("/dev/snd/pcmC0D0c")).isEmpty)
        #expect(names("net.connect_tcp", .port(443)) == ["network"])
        #expect(names("net.connect_tcp", .port(80)).isEmpty)
        #expect(names("scope.signal", .process(1)).isEmpty)
    }

    @Test("The same is told once a minute, and twenty of an app; the others are counted")
    func bounds() {
        var ledger = DenialLedger()
        let one = Denial(["fs.read_file"], .path("/x"))
        #expect(ledger.take(one, times: 3, now: .zero) == 0)
        #expect(ledger.take(one, times: 4, now: .seconds(59)) == nil)
        #expect(ledger.take(one, now: .seconds(60)) == 6)
        #expect(ledger.total == 8)
        for number in 1..<1000 {
            let told = ledger.take(Denial(["fs.read_file"], .path("/\(number)")), now: .seconds(61))
            #expect((told != nil) == (number < DenialLedger.most), "\(number)")
        }
        #expect(ledger.take(Denial(["fs.read_file"], .path("/y")), now: .seconds(121)) == 980)
        #expect(ledger.total == 1008)
    }
}
