// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// ‘torpor protect move’: files that are there before their folder is encrypted.
@Suite(
    "Protected files that are moved",
    .enabled(if: EncryptedScene.obstacle == nil, "\(EncryptedScene.obstacle ?? "")")
)
struct MoveTests {
    private static let fallback = "protected = \"complete\"\nprotected_fallback = \"permissions\"\n"
    private static let files = "$D/s/protected/web/files"

    /// `torpor protect move web` where torpord sees its disk.
    private static func move(_ scene: EncryptedScene, _ words: String = "") throws -> (status: Int32, output: String) {
        try scene.shell("torpor protect move web \(words) --socket \(scene.daemon.socket) 2>&1")
    }

    /// What a folder has, without the times that a read changes.
    private static func listing(_ scene: EncryptedScene, _ folder: String = files) throws -> String {
        try scene.shell(
            "cd \(folder) && find . -printf '%P %y %m %U %G %n %T@ %l\\n' | sort && cat $(find . -type f | sort) | md5sum"
        ).output
    }

    /// Locks. On a very busy machine, torpor-protect may not come through all of /proc, and says so.
    private static func lock(_ scene: EncryptedScene) throws {
        let output = try scene.protect("lock").output
        #expect(output == "locked\n" || output.contains("did not end"), "\(output)")
    }

    /// Makes files that are not encrypted, the keys, and unlocks.
    private static func prepare(_ scene: EncryptedScene, _ script: String = "echo plain > note; ln note link") throws {
        try scene.shell("mkdir -p \(files); chmod 711 \(files)/..; cd \(files); \(script)")
        #expect(try scene.protect("init").status == 0)
        #expect(try scene.protect("unlock").status == 0)
    }

    @Test("Files written without encryption are encrypted, and back; the app is ended for it and started again")
    func whole() throws {
        try EncryptedScene.with(keys: Self.fallback) { scene throws in
            let daemon = scene.daemon
            try daemon.call(.unlockData)
            try daemon.done(.start, "web")
            let path = "os.environ['TORPOR_PROTECTED_DIRECTORY'] + '/diary'"
            try daemon.ask("open(\(path), 'w').write('\(EncryptedScene.secret)')")
            try daemon.ask("os.symlink('/etc/passwd', \(path) + '-link') or os.link(\(path), \(path) + '-again')")
            #expect(try scene.state() == "unlocked, not encrypted")
            var (status, output) = try Self.move(scene, "--stop")
            #expect(status == 1 && output.contains("torpor protect init"), "\(output)")
            try daemon.waitFor("web", "active")
            #expect(try scene.protect("init").status == 0)
            #expect(try scene.protect("unlock").status == 0)
            let before = try Self.listing(scene)
            (status, output) = try Self.move(scene)
            #expect(status == 1 && output.contains("web is running: stop it first, or add --stop"), "\(output)")
            let pid = try daemon.summary("web").pid
            (status, output) = try Self.move(scene, "--stop")
            #expect(status == 0 && output.hasPrefix("the folder of web is encrypted: 3 files moved, "), "\(output)")
            #expect(try Self.listing(scene) == before)
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").pid != pid)
            #expect(try daemon.ask("open(\(path)).read()") == .string(EncryptedScene.secret))
            #expect(try scene.state() == "unlocked, encrypted")
            try Self.lock(scene)
            #expect(try scene.shell("ls \(Self.files)").output.contains("diary") == false)
            let covered = try daemon.summary("web")
            (status, output) = try Self.move(scene, "--decrypt --stop")
            #expect(status == 1 && output.contains("torpor protect unlock"), "\(output)")
            // It need not be ended to learn that.
            let spared = try daemon.summary("web")
            #expect(covered.pid != nil && spared.pid == covered.pid, "\(covered.state), \(spared)")
            #expect(try scene.protect("unlock").status == 0)
            (status, output) = try Self.move(scene, "--decrypt --stop --json")
            let reply = try JSON.parse(Array(output.utf8))
            #expect(status == 0 && reply["files"] == .int(3) && reply["encrypted"] == .bool(false), "\(output)")
            #expect(try Self.listing(scene) == before)
            try daemon.waitFor("web", "active")
            #expect(try scene.state() == "unlocked, not encrypted")
            try Self.lock(scene)
            #expect(try scene.shell("cat \(Self.files)/diary").output == EncryptedScene.secret)
        }
    }

    @Test("An app whose files are not encrypted is not launched, and says what moves them; then it is")
    func refusedBefore() throws {
        try EncryptedScene.with { scene throws in
            let daemon = scene.daemon
            try Self.prepare(scene)
            #expect(try !daemon.verb(.start, "web").ok)
            #expect(try daemon.reports("web").first?.text?.contains("run ‘torpor protect move web’") == true)
            #expect(try scene.state().contains("run ‘torpor protect move web’"))
            let (status, output) = try Self.move(scene)
            #expect(status == 0, "\(output)")
            #expect(try scene.state() == "unlocked, encrypted")
            #expect(try Self.move(scene).output == "the folder of web is encrypted\n")
            try daemon.done(.start, "web")
            #expect(try daemon.ask("open(os.environ['TORPOR_PROTECTED_DIRECTORY'] + '/note').read()") == "plain\n")
        }
    }

    @Test("A full disk, a process that has a file open, or a lock in between: nothing is changed, and it says why")
    func refusals() throws {
        try EncryptedScene.with { scene throws in
            try Self.prepare(scene, "head -c 18M /dev/urandom > large; echo plain > note; ln note link")
            let before = try Self.listing(scene)
            func refuses(_ reason: String) throws {
                let (status, output) = try Self.move(scene)
                #expect(status == 1 && output.contains(reason) && output.contains("nothing is changed"), "\(output)")
                #expect(try Self.listing(scene) == before)
                #expect(try scene.shell("ls -A \(Self.files)/..").output == "files\n")
            }
            try refuses("needs space for a second copy")
            let pid = try scene.daemon.livingTorpord()
            let file = "\(scene.daemon.directory)/s/protected/web/files/note"
            let holder = try Spawn.start(
                ["/usr/bin/nsenter", "-t", "\(pid)", "-m", "/bin/sh", "-c", "exec 7<\(file); exec sleep 1000"],
                environment: [:],
                output: "/dev/null"
            )
            defer {
                kill(holder, SIGKILL)
                waitpid(holder, nil, 0)
            }
            try scene.daemon.eventually("it has the file open") {
                (try? File.readLink("/proc/\(holder)/fd/7"))?.hasSuffix("/note") ?? false
            }
            try refuses("process \(holder) (sleep) has files of ")
            #expect(try scene.protect("lock").status == 0)
            let (status, output) = try Self.move(scene)
            #expect(status == 1 && output.contains("run ‘torpor protect unlock’"), "\(output)")
        }
    }

    @Test("While files are moved, a launch waits, and no lock leaves the key behind")
    func launches() throws {
        try EncryptedScene.with { scene throws in
            let daemon = scene.daemon
            try Self.prepare(scene)
            #expect(try Self.move(scene).status == 0)
            let pid = try daemon.livingTorpord()
            // As a move has it.
            let door = "\(daemon.directory)/s/protected/web"
            let mover = try Spawn.start(
                ["/usr/bin/nsenter", "-t", "\(pid)", "-m", "/usr/bin/flock", door, "/bin/sleep", "1000"],
                environment: [:],
                output: "/dev/null"
            )
            func isLocked() throws -> Bool { try scene.shell("flock -n \(door) true").status == 1 }
            try daemon.eventually("the door is locked") { try isLocked() }
            let (status, output) = try Self.move(scene)
            #expect(status == 1 && output.contains("another ‘torpor protect move web’ is under way"), "\(output)")
            let client = try Client(daemon, "start", "web")
            try daemon.eventually("it waits") {
                try daemon.summary("web").heldBack?.contains("being moved by ‘torpor protect move’") ?? false
            }
            kill(-mover, SIGKILL)
            waitpid(mover, nil, 0)
            // It is tried every ten seconds, and when a user asks for the state.
            try daemon.eventually("it is launched") { try daemon.call(.protection) != .null && client.reap() != nil }
            #expect(try client.finish(daemon) == 0)
        }
    }

    @Test("A move that is killed before any of its steps leaves every file, and the next one does the rest")
    func kills() throws {
        // Each step of about forty is a matter of minutes: TORPOR_MOVE_STRIDE=1.
        let variable = ProcessInfo.processInfo.environment["TORPOR_MOVE_STRIDE"]
        let stride = variable.flatMap { Int($0) } ?? 6
        let first = Int.random(in: 1...stride)
        print("moves are killed at every \(stride)th step from \(first) on")
        try EncryptedScene.with { scene throws in
            try File.write(scene.daemon.directory + "/killer.c", Self.killer)
            let (code, problem) = try scene.shell("gcc -shared -fPIC -o $D/killer.so $D/killer.c -ldl 2>&1")
            try #require(code == 0, "\(problem)")
            try Self.prepare(scene, "echo one > a; ln a b; mkdir c; echo two > c/d; ln -s a e; truncate -s 1M f")
            let before = try Self.listing(scene)
            let door = "$D/s/protected/web"
            func move(_ way: String, killedAt step: Int? = nil) throws -> (status: Int32, output: String) {
                let variables = step.map { "LD_PRELOAD=$D/killer.so KILL_AT=\($0) " } ?? ""
                return try scene.shell("\(variables)torpor-protect move $D/s/protected web \(way) 2>&1")
            }
            var step = first
            var running = ["encrypt", "decrypt"]
            var killed = 0
            while !running.isEmpty {
                for way in ["encrypt", "decrypt"] {
                    let wasKilled = try move(way, killedAt: step).status != 0
                    #expect(try Self.listing(scene) == before, "\(way), killed at \(step)")
                    if wasKilled { killed += 1 } else { running.removeAll { $0 == way } }
                    // Whatever it left, the next one completes it.
                    let (status, output) = try move(way)
                    #expect(status == 0, "\(way) after \(step): \(output)")
                    #expect(try Self.listing(scene) == before, "\(way) after \(step)")
                    #expect(try scene.shell("ls -A \(door)").output == "files\n", "\(way) after \(step)")
                }
                step += stride
            }
            #expect(killed >= 60 / stride, "\(killed)")
        }
    }

    /// Ends the program before its KILL_AT-th call that changes the disk.
    private static let killer = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <signal.h>
        #include <stdarg.h>
        #include <stdlib.h>
        #include <sys/stat.h>
        #include <sys/types.h>
        #include <unistd.h>
        static void step(void)
        {
            static int count;
            const char *at = getenv("KILL_AT");
            if (at && ++count == atoi(at)) kill(getpid(), SIGKILL);
        }
        #define STEP(result, name, parameters, arguments)                          \
            result name parameters                                                 \
            {                                                                      \
                static result(*real) parameters;                                   \
                if (!real) real = (result(*) parameters)dlsym(RTLD_NEXT, #name);   \
                step();                                                            \
                return real arguments;                                             \
            }
        STEP(int, mkdir, (const char *a, mode_t b), (a, b))
        STEP(int, mkdirat, (int a, const char *b, mode_t c), (a, b, c))
        STEP(int, renameat2, (int a, const char *b, int c, const char *d, unsigned e), (a, b, c, d, e))
        STEP(int, symlinkat, (const char *a, int b, const char *c), (a, b, c))
        STEP(int, linkat, (int a, const char *b, int c, const char *d, int e), (a, b, c, d, e))
        STEP(int, unlinkat, (int a, const char *b, int c), (a, b, c))
        STEP(int, fsync, (int a), (a))
        STEP(int, syncfs, (int a), (a))
        STEP(int, chmod, (const char *a, mode_t b), (a, b))
        STEP(int, fchmodat, (int a, const char *b, mode_t c, int d), (a, b, c, d))
        STEP(int, utimensat, (int a, const char *b, const struct timespec *c, int d), (a, b, c, d))
        STEP(ssize_t, pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d))
        STEP(int, ftruncate, (int a, off_t b), (a, b))
        int ioctl(int a, unsigned long b, ...)
        {
            static int (*real)(int, unsigned long, ...);
            if (!real) real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
            va_list list;
            va_start(list, b);
            void *c = va_arg(list, void *);
            va_end(list);
            step();
            return real(a, b, c);
        }
        """#
}
