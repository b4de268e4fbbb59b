// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Linux
import Testing

/// torpor-desktop in a session with PipeWire.
@Suite final class SoundTests {
    private var manager: ChildProcess?

    static let obstacle: String? = {
        for program in ["pipewire", "wireplumber", "pw-dump", "pw-play", "dbus-daemon"]
        where !File.isExecutable("/usr/bin/" + program) {
            return "\(program) is not installed: make test installs it"
        }
        return nil
    }()

    /// A device without sound.
    private static let sink = """
        context.objects = [
            { factory = adapter
                args = {
                    factory.name = support.null-audio-sink
                    node.name = silence
                    media.class = Audio/Sink
                    audio.position = [ MONO ]
                }
            }
        ]

        """

    /// PipeWire and its session manager, which ends with it.
    private func startPipeWire(_ bench: Bench) throws -> ChildProcess {
        let folder = bench.directory + "/.config/pipewire/pipewire.conf.d"
        if !File.exists(folder) {
            for name in ["/.config", "/.config/pipewire", "/.config/pipewire/pipewire.conf.d"] {
                try File.makeDirectory(bench.directory + name, mode: 0o755)
            }
            try File.write(folder + "/sink.conf", Self.sink)
        }
        let process = try bench.child(["/usr/bin/pipewire"])
        let path = bench.session + "/pipewire-0"
        try bench.eventually("PipeWire") { Sockets.isServed(path: path) }
        manager = try bench.child(["/usr/bin/wireplumber"])
        return process
    }

    /// Plays silence, once the session manager has a place for it: it sends away a stream that comes before.
    private func play(_ bench: Bench) throws -> ChildProcess {
        let file = bench.directory + "/silence.wav"
        if !File.exists(file) { try File.write(file, Self.silence(seconds: 600)) }
        let ready = "/usr/bin/pw-dump | /bin/grep -q '\"default.audio.sink\"'"
        let script = "until \(ready); do /bin/sleep 0.1; done 2>/dev/null; exec /usr/bin/pw-play \"$0\""
        return try bench.child(["/bin/sh", "-c", script, file])
    }

    /// A file of silence: one channel of eight bits, 8,000 times a second.
    static func silence(seconds: Int) -> [UInt8] {
        func bytes(_ number: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(number >> (8 * $0) & 255) } }
        let count = 8_000 * seconds
        let format = bytes(1, 2) + bytes(1, 2) + bytes(8_000, 4) + bytes(8_000, 4) + bytes(1, 2) + bytes(8, 2)
        return Array("RIFF".utf8) + bytes(36 + count, 4) + Array("WAVEfmt ".utf8) + bytes(16, 4) + format
            + Array("data".utf8) + bytes(count, 4) + [UInt8](repeating: 128, count: count)
    }

    private func problem(_ bench: Bench, at location: SourceLocation = #_sourceLocation) throws -> String {
        try bench.hear(at: location) { report in
            if case .listening(.some(let problem)) = report { problem } else { nil }
        }
    }

    /// Waits until exactly these processes play.
    private func hear(_ pids: [Int32], _ bench: Bench, at location: SourceLocation = #_sourceLocation) throws {
        try bench.hear(at: location) { report in
            if case .sound(let streams) = report, streams.map(\.pid) == pids { () } else { nil }
        }
    }

    /// pw-dump, a child of the program.
    private func pwDump(_ bench: Bench) -> Int32? {
        guard let program = bench.program else { return nil }
        return ((try? ProcFS.children(program.pid)) ?? []).first { (try? ProcFS.cmdline($0))?.first == "pw-dump" }
    }

    @Test(.enabled(if: obstacle == nil, "pipewire is needed: make test installs it"))
    func `who plays is reported, and who has stopped`() throws {
        let bench = try Bench()
        let server = try startPipeWire(bench)
        try bench.say(.listen(true))
        try bench.hear(.listening(problem: nil))
        try hear([], bench)
        let player = try play(bench)
        try hear([player.pid], bench)
        #expect(
            bench.reports.contains { report in
                if case .sound(let streams) = report { streams.first?.role == "Music" } else { false }
            }
        )
        // Another torpord.
        _ = try bench.greet()
        try bench.say(.listen(true))
        try bench.hear(.listening(problem: nil))
        try hear([player.pid], bench)
        player.kill()
        try hear([], bench)
        #expect(pwDump(bench) != nil)
        try bench.say(.listen(false))
        try bench.eventually("pw-dump ends") { self.pwDump(bench) == nil }
        _ = try bench.greet()
        server.kill()
    }

    @Test(.enabled(if: obstacle == nil, "pipewire is needed: make test installs it"))
    func `PipeWire and pw-dump may come late, go and return`() throws {
        let bench = try Bench()
        try bench.say(.listen(true))
        #expect(try problem(bench) == "PipeWire does not run in this session")
        var server = try startPipeWire(bench)
        try bench.hear(.listening(problem: nil))
        let player = try play(bench)
        try hear([player.pid], bench)
        let first = try #require(pwDump(bench))
        kill(first)
        #expect(try problem(bench) == "PipeWire has ended")
        try bench.hear(.listening(problem: nil))
        try hear([player.pid], bench)
        #expect(pwDump(bench) != first)
        server.kill()
        server.reap()
        #expect(try problem(bench) == "PipeWire has ended")
        player.kill()
        server = try startPipeWire(bench)
        try bench.hear(.listening(problem: nil))
        try hear([], bench)
        // The program is killed: no process of it is left.
        let last = try #require(pwDump(bench))
        bench.program?.kill()
        bench.program?.reap()
        try bench.eventually("pw-dump is killed with it") { self.hasEnded(last) }
        server.kill()
    }

    private func kill(_ pid: Int32) {
        guard let pidfd = try? Pidfd.open(pid) else { return }
        try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
    }

    private func hasEnded(_ pid: Int32) -> Bool { (try? ProcFS.stat(pid))?.hasEnded ?? true }

    @Test func `without pw-dump a sentence says so`() throws {
        let bench = try Bench(hasBus: false, starts: false)
        try bench.start(["TORPOR_PW_DUMP=\(bench.directory)/pw-dump"])
        try bench.say(.listen(true))
        let problem = try problem(bench)
        #expect(problem == "\(bench.directory)/pw-dump is not there: install PipeWire's tools (Debian: pipewire-bin)")
        _ = try bench.greet()
    }

    @Test(arguments: [
        ("/bin/echo", "pw-dump writes what is not JSON"), ("/bin/true", "PipeWire does not run in this session"),
    ])
    func `a program that does something else is left alone`(program: String, expected: String) throws {
        let bench = try Bench(hasBus: false, starts: false)
        try bench.start(["TORPOR_PW_DUMP=\(program)"])
        try bench.say(.listen(true))
        #expect(try problem(bench) == expected)
        _ = try bench.greet()
    }

    @Test(.enabled(if: File.isExecutable("/usr/bin/gcc"), "needs gcc"))
    func `streams that begin and end all the time are reported at a bounded rate, the last state too`() throws {
        let bench = try Bench(hasBus: false, starts: false)
        // A stream that begins and ends a thousand times, and then plays.
        let source = #"""
            #include <stdio.h>
            #include <unistd.h>
            static void say(const char *state, int pid) {
                printf("[{\"id\": 7, \"type\": \"PipeWire:Interface:Node\", \"info\": {\"state\": \"%s\", \"props\": "
                       "{\"media.class\": \"Stream/Output/Audio\", \"application.process.id\": %d}}}]\n", state, pid);
                fflush(stdout);
                usleep(500);
            }
            int main(void) {
                for (int i = 0; i < 1000; i++) { say("running", 4242); say("idle", 4242); }
                say("running", 4243);
                for (;;) pause();
            }
            """#
        let program = bench.directory + "/dump"
        try File.write(program + ".c", source)
        let compiler = try bench.child(["/usr/bin/gcc", "-o", program, program + ".c"])
        try bench.eventually("it is compiled") { (try? ProcFS.stat(compiler.pid))?.hasEnded ?? true }
        compiler.reap()
        try #require(File.isExecutable(program))
        try bench.start(["TORPOR_PW_DUMP=\(program)"])
        try bench.say(.listen(true))
        try bench.hear(.listening(problem: nil))
        try hear([4243], bench)
        let count = bench.reports.count { if case .sound = $0 { true } else { false } }
        #expect(count < 400, "of 2,000 changes")
        _ = try bench.greet()
    }

    @Test func `it executes nothing else`() throws {
        guard Confinement.isAvailable() else { return }
        let bench = try Bench(hasBus: false, starts: false)
        // A script needs an interpreter, which it may not execute.
        try File.write(bench.directory + "/script", "#!/bin/sh\necho '[]'; sleep 1000\n")
        try File.setMode(bench.directory + "/script", 0o755)
        try bench.start(["TORPOR_PW_DUMP=\(bench.directory)/script"])
        try bench.say(.listen(true))
        #expect(try problem(bench).contains("cannot be started"))
    }
}
