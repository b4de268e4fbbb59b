// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Processes
import Testing

/// A real keeper with a stand-in for torpord below it: a small script that hands its end of the socket to the test,
/// which then plays torpord with the real client, and that dies when it is told to.
final class Bench {
    let loop: EventLoop
    let folder: String
    let process: Process
    /// The stand-in that lives now.
    private(set) var standIn: (pid: Int32, connection: Descriptor, environment: String)!
    /// Its end of the socket.
    private(set) var socket: Descriptor!
    private(set) var keeper: Keeper!
    private(set) var exits: [ExitRecord] = []
    private(set) var orphans: [OrphanRecord] = []
    /// Launches of an earlier torpord that came to exec.
    private(set) var lateLaunches: [(app: String, incarnation: UInt32, launched: Launched)] = []
    /// The keeper was told to do as if the kernel did not tell how another's child ended.
    let hasNoPidfdInfo: Bool
    private var launched: [Launched] = []
    private var kept: [Descriptor] = []
    private var table: Descriptor?
    private let listener: Descriptor
    private let pidfd: Descriptor

    static let program: String = {
        let places = [ThisProcess.executable, CommandLine.arguments.first].compactMap { $0 }
        return places.compactMap { File.parent(of: $0) }.map { $0 + "/torpor-keeper" }
            .first(where: File.isExecutable) ?? ThisProcess.directory + "/.build/debug/torpor-keeper"
    }()

    private static let script = """
        import os, select, signal, socket, sys
        c = socket.socket(socket.AF_UNIX); c.connect(sys.argv[1])
        # Else a signal in the moment before the last recv, after Python has looked, would wait for its end.
        heard, bell = os.pipe(); os.set_blocking(bell, False); signal.set_wakeup_fd(bell)
        signal.signal(signal.SIGUSR2, lambda *_: c.send(b"USR2"))
        signal.signal(signal.SIGTERM, lambda *_: c.send(b"TERM"))
        text = "%d\\n%s" % (os.getpid(), "\\n".join(os.environ))
        socket.send_fds(c, [text.encode()], [int(os.environ["TORPOR_KEEPER_FD"])])
        while c not in select.select([c, heard], [], [])[0]: os.read(heard, 64)
        sys.exit(int(c.recv(16) or b"99"))
        """

    /// The program of the stand-in, where the test may replace it.
    let torpord: String?
    /// The interpreter that runs the stand-in.
    static let python = URL(fileURLWithPath: "/usr/bin/python3").resolvingSymlinksInPath().path

    init(
        program: String = Bench.program,
        watch: Int = 0,
        environment: [String: String] = [:],
        ownTorpord: Bool = false
    ) throws {
        hasNoPidfdInfo = environment["TORPOR_KEEPER_TEST_NO_PIDFD_INFO"] != nil
        loop = try EventLoop()
        folder = NSTemporaryDirectory() + "torpor-keeper-\(UUID().uuidString.prefix(8))"
        try File.makeDirectories(folder)
        try File.write(folder + "/stand-in.py", Self.script)
        try File.write(folder + "/log", "")
        torpord = ownTorpord ? folder + "/torpord" : nil
        listener = try Sockets.listen(path: folder + "/socket")
        process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = [torpord ?? "/usr/bin/python3", folder + "/stand-in.py", folder + "/socket"]
        process.environment = ProcessInfo.processInfo.environment
            .merging(["TORPOR_LOOP_WATCHDOG_MS": String(watch), "ASAN_OPTIONS": "detect_leaks=0"]) { $1 }.merging(
                environment
            ) { $1 }
        if let torpord { try copyProgram(Bench.python, to: torpord) }
        process.standardInput = FileHandle.nullDevice
        process.standardError = FileHandle(forWritingAtPath: folder + "/log")
        try process.run()
        pidfd = try Pidfd.open(process.processIdentifier)
    }

    /// What the keeper has complained of.
    var log: String { (try? File.readString(folder + "/log")) ?? "" }

    /// Takes the next stand-in's place, and greets the keeper as torpord does.
    func becomeTorpord(greet: Bool = true) throws {
        try #require(try Descriptor.wait(listener.raw, timeout: .seconds(60)), "no torpord was started: \(log)")
        let connection = try #require(try Sockets.accept(listener.raw))
        _ = try Descriptor.wait(connection.raw, timeout: .seconds(60))
        let hello = try #require(try Sockets.receive(connection.raw, maximum: 65536))
        let parts = String(decoding: hello.bytes, as: UTF8.self).split(separator: "\n", maxSplits: 1)
        standIn = (try #require(Int32(parts[0])), connection, String(parts[1]))
        let sent = try #require(hello.descriptors.first)
        socket = sent
        keeper = nil
        if greet { try self.greet() }
    }

    /// Says HELLO.
    func greet() throws {
        keeper = try Keeper(descriptor: try socket.duplicate(), loop: loop)
        keeper.onExit = { [unowned self] in exits.append($0) }
        keeper.onOrphan = { [unowned self] in orphans.append($0) }
        keeper.onLaunched = { [unowned self] in lateLaunches.append(($0, $1, $2)) }
        table = keeper.table
    }

    /// torpord dies, as by the OOM killer.
    func killTorpord() throws {
        keeper = nil
        try Signal.send(Signal.kill, to: standIn.pid)
        socket = nil
    }

    /// Puts a program into the place of the stand-in's.
    func install(_ source: String) throws {
        guard let torpord else { return }
        try copyProgram(source, to: torpord + ".new")
        try File.rename(torpord + ".new", torpord)
    }

    /// Whether the end of what was adopted is known here.
    var knowsFosters: Bool { Scenarios.kernelTellsExits && !hasNoPidfdInfo }

    /// Says SETTLED, and waits until it was heard: nothing can be learnt of a torpord that is gone by then.
    func settle() throws {
        keeper.settled()
        _ = try keeper.held()
    }

    /// torpord hands over, ends, and the next one greets.
    func handOver(replacingKeeper: Bool = false) throws {
        keeper.handOver(replacingKeeper: replacingKeeper)
        dropKeeper()
        try tellStandIn("0")
        try becomeTorpord()
    }

    /// This end is no longer torpord's.
    func dropKeeper() {
        keeper = nil
        socket = nil
    }

    /// The status that the stand-in is to end with.
    func tellStandIn(_ status: String) throws { try Sockets.send(standIn.connection.raw, Array(status.utf8)) }

    /// The stand-in has ended; with a keeper that sleeps it is a zombie then.
    func waitForStandInsEnd() throws {
        let pidfd = try Pidfd.open(standIn.pid)
        try #require(try Descriptor.wait(pidfd.raw, timeout: .seconds(60)))
    }

    /// Does something of which the keeper hears only afterwards, all at once.
    func whileKeeperSleeps(_ body: () throws -> Void) throws {
        let pid = process.processIdentifier
        try Signal.send(Signal.stop, to: pid)
        defer { try? Signal.send(Signal.continue, to: pid) }
        let deadline = Clock.monotonic() + .seconds(60)
        while try ProcFS.stat(pid).state != "T", Clock.monotonic() < deadline {
            try loop.runOnce(timeout: .milliseconds(1))
        }
        try body()
    }

    /// What the keeper was executed with.
    func commandLine() throws -> String { try File.readString("/proc/\(process.processIdentifier)/cmdline") }

    /// A plan whose launch hangs until somebody opens the FIFO at `gate`.
    func hanging(_ app: String, executable: String = "/bin/sleep") throws -> (plan: LaunchPlan, gate: String) {
        let folder = self.folder + "/cgroup-" + app
        try? File.removeTree(folder)
        try File.makeDirectories(folder)
        try File.makeFIFO(folder + "/cgroup.procs")
        let directory = try File.open(folder, .directory)
        kept.append(directory)
        var plan = shell("", app: app)
        plan.executable = executable
        plan.arguments = ["sleep", "60"]
        plan.cgroup = directory.raw
        return (plan, folder + "/cgroup.procs")
    }

    /// Ends an app and waits until the keeper says so.
    func end(_ one: Launched) throws {
        try Pidfd.sendSignal(one.pidfd.raw, Signal.kill)
        try #require(try turn { exits.contains { $0.pid == one.pid && $0.startTime == one.startTime } })
    }

    /// What was heard so far is no longer of interest.
    func forgetExits() { exits = [] }

    /// Has the keeper adopt it, and waits for the answer.
    func adopt(_ foster: Foster, app: String) throws -> Errno? {
        var answer: Errno??
        keeper.adopt(app: app, incarnation: 5, identity: foster.identity, pidfd: foster.pidfd.raw) { answer = $0 }
        try #require(try turn { answer != nil }, "no answer to an adoption: \(log)")
        return answer!
    }

    /// Waits until the keeper's table shows an app in a state (torpor_keeper_state).
    func waitUntilTable(shows app: String, inState state: UInt32) throws {
        let handle = FileHandle(fileDescriptor: try #require(table).raw, closeOnDealloc: false)
        let deadline = Clock.monotonic() + .seconds(20)
        while Clock.monotonic() < deadline {
            try handle.seek(toOffset: 4096)
            let bytes = [UInt8](try handle.read(upToCount: 152 * 1024) ?? Data())
            for start in stride(from: 0, to: bytes.count - 151, by: 152) where bytes[start] == UInt8(state) {
                let name = bytes[(start + 88)..<(start + 152)].prefix { $0 != 0 }
                if String(decoding: name, as: UTF8.self) == app { return }
            }
            try loop.runOnce(timeout: .milliseconds(5))
        }
        Issue.record("\(app) does not come to state \(state): \(log)")
    }

    /// Turns the loop until it is so; false after 20 s.
    func turn(until condition: () -> Bool) throws -> Bool {
        let deadline = Clock.monotonic() + .seconds(20)
        while !condition() {
            if Clock.monotonic() > deadline { return false }
            try loop.runOnce(timeout: .milliseconds(20))
        }
        return true
    }

    /// A shell's plan whose output goes to `output`.
    func shell(_ text: String, app: String = "web", output: Int32 = -1) -> LaunchPlan {
        var plan = LaunchPlan(
            app: app,
            incarnation: 1,
            executable: "/bin/sh",
            arguments: ["sh", "-c", text],
            environment: ["PATH=/usr/bin:/bin"]
        )
        plan.standardOutput = output
        plan.standardError = output
        return plan
    }

    /// Launches and waits for what became of it.
    func launch(_ plan: LaunchPlan) throws -> Result<Launched, LaunchFailure> {
        var result: Result<Launched, LaunchFailure>?
        start(plan) { result = $0 }
        try #require(try turn { result != nil }, "no answer to a launch: \(log)")
        return result!
    }

    /// A plan for a second keeper, whose torpord the next stand-in plays; it logs where the first one does.
    func keeperPlan(_ program: String, options: [String] = []) -> LaunchPlan {
        var plan = LaunchPlan(
            app: "keeper",
            incarnation: 1,
            executable: program,
            arguments: ["torpor-keeper"] + options
                + ["/usr/bin/python3", folder + "/stand-in.py", folder + "/socket"],
            environment: ["PATH=/usr/bin:/bin", "TORPOR_LOOP_WATCHDOG_MS=0", "ASAN_OPTIONS=detect_leaks=0"]
        )
        if let log = try? File.open(folder + "/log", [.write, .append]) {
            kept.append(log)
            plan.standardError = log.raw
        }
        return plan
    }

    /// The connections to the first keeper and its stand-in, which stay as long as the answer is kept.
    func keepFirst() -> [AnyObject] { [keeper, standIn.connection, socket] }

    /// Launches.
    func start(_ plan: LaunchPlan, _ completion: @escaping (Result<Launched, LaunchFailure>) -> Void) {
        keeper.launch(plan) { [unowned self] in
            if case .success(let one) = $0 { launched.append(one) }
            completion($0)
        }
    }

    /// Runs a shell to its end: what it wrote, and how it ended.
    func run(_ plan: (Int32) -> LaunchPlan) throws -> (output: String, exit: ExitRecord) {
        let path = folder + "/output"
        let output = try File.open(path, [.write, .create, .truncate])
        let one = try launch(plan(output.raw)).get()
        var exit: ExitRecord?
        _ = try turn {
            exit = exits.last { $0.pid == one.pid }
            return exit != nil
        }
        return (try File.readString(path), try #require(exit, "no exit: \(log)"))
    }

    /// The keeper's exit status, once it is gone.
    func status() throws -> Int32 {
        try #require(try Descriptor.wait(pidfd.raw, timeout: .seconds(20)), "the keeper does not end: \(log)")
        process.waitUntilExit()
        return process.terminationStatus
    }

    func close() {
        keeper = nil
        for one in launched { try? Pidfd.sendSignal(one.pidfd.raw, Signal.kill) }
        try? Signal.send(Signal.kill, to: process.processIdentifier)
        if standIn != nil { try? Signal.send(Signal.kill, to: standIn.pid) }
        _ = try? Descriptor.wait(pidfd.raw, timeout: .seconds(60))
        process.waitUntilExit()
        try? File.removeTree(folder)
    }
}

func withBench(
    program: String = Bench.program,
    watch: Int = 0,
    environment: [String: String] = [:],
    ownTorpord: Bool = false,
    greet: Bool = true,
    _ body: (Bench) throws -> Void
) throws {
    let bench = try Bench(program: program, watch: watch, environment: environment, ownTorpord: ownTorpord)
    defer { bench.close() }
    try bench.becomeTorpord(greet: greet)
    try body(bench)
}

/// Copies a program by one of its own: a copy that this process writes is open for writing in every child that another
/// test forks meanwhile, and executing it fails then (ETXTBSY).
func copyProgram(_ source: String, to place: String) throws {
    let copy = try Process.run(URL(fileURLWithPath: "/bin/cp"), arguments: [source, place])
    copy.waitUntilExit()
    try #require(copy.terminationStatus == 0, "cp \(source) \(place)")
}
