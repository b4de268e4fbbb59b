// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestMachine
import Testing

extension Emulation {
    /// What another kernel than that of the tests' own machine does: Landlock 2, fs-verity, encrypted folders.
    @Suite("What an app may, and what it is made of", .serialized) struct ConfinementTests {
        /// Tries accesses as an ordinary user, writes "WORD=ERRNO" for each into its own folder, and stays.
        private static let probe = """
            use Errno; use Socket;
            my @results;
            sub tried { my ($word, $ok) = @_; push @results, "$word=" . ($ok ? 0 : $! + 0); }
            for my $place ("open", "asked", "closed") {
                tried("read:$place", open(my $file, "<", "/srv/$place/file"));
                tried("write:$place", open($file, ">>", "/srv/$place/file"));
            }
            tried("write:rw", open(my $file, ">>", "/srv/rw/a/file"));
            tried("move:rw", rename("/srv/rw/a/file", "/srv/rw/b/file") && rename("/srv/rw/b/file", "/srv/rw/a/file"));
            tried("truncate:closed", truncate("/srv/closed/file", 0));
            tried("socket", socket(my $inet, PF_INET, SOCK_STREAM, 0));
            tried("unix", socket(my $unix, PF_UNIX, SOCK_STREAM, 0));
            tried("signal", kill(0, $ENV{OUTSIDE}));
            my $place = "$ENV{TORPOR_DOCUMENTS}/results";
            open(my $out, ">", "$place.new") or die "$!";
            print $out map { "$_\\n" } @results;
            close($out);
            rename("$place.new", $place);
            sleep 1 while 1;

            """

        private static let apps = """
            [apps.walled]
            exec = ["/usr/bin/perl", "/srv/open/probe.pl"]
            environment = { OUTSIDE = "@PID" }
            user = "nobody"
            data_folders = true
            sandbox = true
            [apps.walled.permissions]
            "files:/srv/open:ro" = { purpose = "Its program", default = "allow" }
            "files:/srv/rw" = { purpose = "Writes there", default = "allow" }
            "files:/srv/asked:ro" = { purpose = "Reads there" }
            network = { purpose = "Asks a server", ports = [443] }
            [apps.note]
            bundle = "note"
            [apps.diary]
            exec = ["/usr/bin/perl", "/srv/open/diary.pl"]
            protected = "complete"

            """

        /// The machine with these apps; `@PID` is a process of theirs outside.
        private func machine(_ body: (Emulated) throws -> Void) throws {
            let machine = try Emulation.machine()
            defer {
                _ = try? machine.run(
                    "torpor kill walled note diary; cd /var/lib/torpor && umount bundles; umount protected; true"
                )
                try? machine.write("/etc/torpor/torpor.toml", Emulation.head + Emulation.apps)
                _ = try? machine.run("torpor apply; kill $(cat /run/outside)")
            }
            try machine.done(
                """
                setpriv --reuid=nobody --regid=nogroup --clear-groups sleep infinity >/dev/null 2>&1 &
                echo $! >/run/outside
                cd /usr/lib/torpor-test
                for module in loop ecb xts cts sha512_generic; do
                    grep -q "^$module " /proc/modules || insmod ./$module.ko || exit
                done
                mkdir -p /srv/open /srv/asked /srv/closed /srv/rw/a /srv/rw/b
                for place in open asked closed rw/a; do echo content >/srv/$place/file; done
                chown -R nobody /srv/closed /srv/rw /srv/asked
                """
            )
            let pid = try machine.done("cat /run/outside")
            try machine.write("/srv/open/probe.pl", Self.probe)
            try machine.write("/srv/open/diary.pl", Self.diary)
            try machine.write(
                "/etc/torpor/torpor.toml",
                Emulation.head + Emulation.apps + Self.apps.replacingOccurrences(of: "@PID", with: pid)
            )
            try machine.done("torpor apply")
            try body(machine)
        }

        /// An ext4 of its own with a feature, mounted on a folder. In 6.1 fs-verity wants blocks as large as pages.
        private func mount(_ feature: String, on folder: String, _ machine: Emulated) throws {
            try machine.done(
                """
                rm -f /run/disk-\(feature); truncate -s 48M /run/disk-\(feature)
                mkfs.ext4 -q -b 4096 -O \(feature) /run/disk-\(feature)
                mkdir -p \(folder) && mount -o loop /run/disk-\(feature) \(folder) && chmod 711 \(folder)
                """
            )
        }

        private static let results = "/var/lib/torpor/data/walled/documents/results"

        private func results(_ machine: Emulated) throws -> [String: Int] {
            try machine.eventually("it has tried all", within: 30) { try machine.run("test -e \(Self.results)").ok }
            var found: [String: Int] = [:]
            for line in try machine.read(Self.results).split(separator: "\n") {
                let parts = line.split(separator: "=")
                if parts.count == 2 { found[String(parts[0])] = Int(parts[1]) }
            }
            return found
        }

        @Test("Landlock 2 withholds what is not allowed; status says what it does not, and an answer changes it")
        func landlock() throws {
            try machine { machine throws in
                try machine.done("rm -f \(Self.results); torpor start walled")
                var expected = [
                    "read:open": 0, "write:open": 13, "read:asked": 13, "write:asked": 13, "read:closed": 13,
                    "write:closed": 13, "write:rw": 0, "move:rw": 0, "socket": 13, "unix": 0,
                    // What Landlock 2 does not withhold.
                    "truncate:closed": 0, "signal": 0,
                ]
                #expect(try results(machine) == expected)
                let status = try machine.done("torpor status walled")
                for sentence in ["it can truncate files", "it can signal processes of its user"] {
                    #expect(status.contains(sentence), "\(status)")
                }
                #expect(try machine.done("torpor permissions walled").contains("asked"))
                let pid = try #require(try machine.app("walled").pid)
                try machine.done("rm -f \(Self.results); torpor permissions walled allow files:/srv/asked:ro network")
                try machine.waitFor("walled", "is launched again") { $0.state == "active" && $0.pid != pid }
                expected["read:asked"] = 0
                expected["socket"] = 0
                #expect(try results(machine) == expected)
                #expect(try machine.done("torpor status walled").contains("it can use all TCP ports"))
                #expect(try machine.app("walled").lastExit?.reason == "permission-changed")
                // Taken back while it is suspended: it is evicted, and has the new sandbox when it is needed.
                try machine.done("torpor suspend walled && rm -f \(Self.results)")
                #expect(try machine.done("torpor permissions walled deny network").contains("walled is evicted"))
                try machine.waitFor("walled", in: "not-running")
                try machine.done("torpor foreground walled")
                expected["socket"] = 13
                #expect(try results(machine) == expected)
                try machine.done("torpor stop walled && torpor permissions walled --reset")
            }
        }

        /// Reads its file again and again, and writes the last result to /run/note.
        private static let note = """
            #!/usr/bin/perl
            # \(String(repeating: "x", count: 100))
            use Errno; use Fcntl;
            while (1) {
                my ($text, $result) = ("", "cannot be opened");
                if (sysopen(my $file, "data", O_RDONLY)) {
                    my $count;
                    1 while ($count = sysread($file, $text, 65536, length $text));
                    $result = defined $count ? length $text : $!{EIO} ? "EIO" : "$!";
                }
                open(my $out, ">", "/run/note.new") or die "$!";
                print $out "$result\\n";
                close($out);
                rename("/run/note.new", "/run/note");
                select undef, undef, undef, 0.2;
            }

            """

        /// Changes a byte of a file on the disk, beside the filesystem, as a disk that fails or its thief does.
        private func spoil(_ file: String, _ machine: Emulated) throws {
            try machine.done(
                """
                sync; block=$(debugfs -R "blocks \(file)" /run/disk-verity 2>/dev/null | awk '{print $1}')
                [ "$block" -gt 0 ] || exit
                printf X | dd of=/run/disk-verity bs=1 seek=$((block * 4096 + 20)) conv=notrunc status=none || exit
                echo 3 >/proc/sys/vm/drop_caches; blockdev --flushbufs $(findmnt -n -o SOURCE /var/lib/torpor/bundles)
                """
            )
        }

        @Test("The kernel verifies a bundle: a byte changed on the disk is EIO for the app that runs, and no launch")
        func verity() throws {
            try machine { machine throws in
                try mount("verity", on: "/var/lib/torpor/bundles", machine)
                try machine.write("/root/note/bin/note", Self.note, executable: true)
                try machine.write(
                    "/root/note/manifest.toml",
                    "name = \"note\"\nversion = \"1.0\"\nneeds = [\"landlock >= 2\"]\n[app]\nexec = [\"bin/note\"]\n"
                )
                let install = try machine.done(
                    """
                    cd /root && rm -rf maker.* note-*.torpor && mkdir -p /etc/torpor/keys
                    head -c 20000 /dev/zero | tr '\\0' d >note/data
                    torpor bundle keygen maker && cp maker.pub /etc/torpor/keys
                    torpor bundle build note && torpor bundle sign note-1.0.torpor --key maker.key
                    torpor install note-1.0.torpor && torpor apply
                    """,
                    within: 120
                )
                #expect(install.contains("verified by the kernel"), "\(install)")
                try machine.done("rm -f /run/note; torpor start note")
                #expect(try machine.done("torpor status note").contains("verified: by the kernel"))
                try machine.eventually("it reads its file") { try machine.read("/run/note") == "20000\n" }
                // Not even root changes a file of it.
                #expect(try !machine.run("echo x >>/var/lib/torpor/bundles/note/1.0/data").ok)
                try spoil("/note/1.0/data", machine)
                try machine.eventually("the kernel refuses it") { try machine.read("/run/note") == "EIO\n" }
                #expect(try machine.app("note").state == "active")
                try machine.done("torpor stop note")
                try spoil("/note/1.0/bin/note", machine)
                let start = try machine.run("torpor start note 2>&1")
                #expect(!start.ok && start.output.contains("Input/output error"), "\(start.output)")
                #expect(try machine.app("note").state == "not-running")
                // What is not as it was signed is named before that.
                try machine.done("cd /var/lib/torpor/bundles/note/1.0 && echo other >new && mv new data")
                let other = try machine.run("torpor start note 2>&1")
                #expect(!other.ok && other.output.contains("data"), "\(other.output)")
            }
        }

        /// Keeps a file of its protected folder, and closes it when it is told to: here, it has it open only to write.
        private static let diary = """
            open(my $file, ">", "$ENV{TORPOR_PROTECTED_DIRECTORY}/diary") or die "$!";
            print $file "a-secret-of-the-diary\\n"; close($file);
            sleep 1 while 1;

            """

        @Test("A protected folder is encrypted by the kernel: after the lock neither root nor the disk has the text")
        func encryption() throws {
            try machine { machine throws in
                // torpord closes the doors of a folder that it knows: they are made again on the new disk.
                try mount("encrypt", on: "/var/lib/torpor/protected", machine)
                try machine.done("echo passphrase >/run/passphrase")
                let protect = "torpor protect"
                let unlock = "\(protect) unlock --stdin </run/passphrase"
                // Argon2id takes its time under emulation.
                try machine.done("\(protect) lock; \(protect) init --stdin </run/passphrase && \(unlock)", within: 120)
                try machine.done("torpor start diary")
                let folder = "/var/lib/torpor/protected/diary/files"
                try machine.eventually("it has written") { try machine.run("test -s \(folder)/diary").ok }
                #expect(try machine.done(protect).contains("unlocked, encrypted"))
                let holds = "sync; echo 3 >/proc/sys/vm/drop_caches; grep -c a-secret-of-the-diary /run/disk-encrypt"
                try machine.done("echo seen-in-plain >/var/lib/torpor/protected/plain; sync")
                #expect(try machine.run("grep -c seen-in-plain /run/disk-encrypt").text != "0")
                #expect(try machine.done("\(protect) lock") == "locked")
                #expect(try machine.run(holds).text == "0")
                #expect(try !machine.run("test -e \(folder)/diary").ok)
                #expect(try machine.run("cat \(folder)/* 2>&1").output.contains("key not available"))
                try machine.done(unlock, within: 120)
                #expect(try machine.read("\(folder)/diary") == "a-secret-of-the-diary\n")
                // Moved out of the encrypted folder, and back into one.
                try machine.done("torpor stop diary; rm \(folder)/diary; echo another >\(folder)/other")
                #expect(try machine.done("\(protect) move diary --decrypt").contains("is not encrypted: 1 file moved"))
                #expect(try machine.done(protect).contains("not encrypted"))
                #expect(try machine.done("\(protect) move diary").contains("is encrypted: 1 file moved"))
                #expect(try machine.read("\(folder)/other") == "another\n")
                #expect(try machine.done("\(protect) lock") == "locked")
                #expect(try !machine.run("test -e \(folder)/other").ok)
            }
        }
    }
}
