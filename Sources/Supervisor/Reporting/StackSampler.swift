// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import WireText

/// Runs `eu-stack` (elfutils), if it is installed, to sample the stacks of an app's threads just before the app is
/// ended. The signal that ends the app waits until `eu-stack` is done, which takes some ten milliseconds. `eu-stack`
/// runs as the app's user, because it processes data of that user. Its time and memory are limited, and it is killed
/// when the last reference to this object is released.
final class StackSampler {
    /// How many apps are sampled at the same time. If a hundred apps fail at once, the stacks of two are enough to find
    /// the cause.
    static let most = 2
    /// How long `eu-stack` may run before it is killed.
    private static let patience = Duration.milliseconds(500)
    private static let mostFrames = 48
    private static let mostBytes = 256 << 10

    private weak var supervisor: Supervisor?
    private weak var app: AppRuntime?
    private let target: Int32
    /// The actions that wait until sampling is over.
    var waiting: [Action] = []
    private(set) var isOver = false
    /// The pid of `eu-stack`; nil until it is launched.
    private(set) var tool: Int32?
    /// The functions on the stack of each thread, innermost first, by the thread's id.
    private(set) var stacks: [Int32: [String]] = [:]
    private var pidfd: Descriptor?
    private var output: Descriptor?
    private var source: IOSource?
    private var timer: TimerSource?
    private var bytes: [UInt8] = []

    /// The actions that wait for the sampling, in the form for the record: the next torpord must carry them out if this
    /// one dies.
    var owed: ActionMask { waiting.reduce(into: []) { $0.formUnion(ActionMask($1)) } }

    /// Starts `eu-stack`; nil if it is not installed or cannot be started.
    init?(_ app: AppRuntime, _ pid: Int32, _ supervisor: Supervisor) {
        self.app = app
        self.supervisor = supervisor
        target = pid
        guard let (plan, ends) = supervisor.lookPlan(app, pid), let read = try? Self.nonBlocking(ends.read) else {
            isOver = true
            return nil
        }
        supervisor.reports.looks += 1
        output = read
        source = try? supervisor.loop.watch(read.raw, .readable) { [weak self] _ in self?.read() }
        timer = try? supervisor.loop.timer { [weak self] in self?.finish() }
        timer?.arm(after: Self.patience)
        let keeper = supervisor.keeper
        keeper.launch(plan) { [weak self, weak supervisor, weak app] result in
            guard case .success(let launched) = result else {
                self?.finish()
                return
            }
            // If `eu-stack` was killed while it had stopped the app, it may have left the app stopped: continue the
            // app.
            supervisor?.launcher.helpers[launched.pid] = { [weak app] _ in
                if let app { Self.release(app, pid) }
            }
            guard let self, !self.isOver else {
                try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill)
                return
            }
            self.tool = launched.pid
            self.pidfd = launched.pidfd
        }
        withExtendedLifetime(ends) {}
    }

    deinit { stop() }

    private static func nonBlocking(_ descriptor: Descriptor) throws(Errno) -> Descriptor {
        try Descriptor.setNonBlocking(descriptor.raw)
        return descriptor
    }

    private static func release(_ app: AppRuntime, _ pid: Int32) {
        guard let tree = app.run.tree, tree.main.pid == pid, let pidfd = tree.pidfd,
            let stat = try? ProcFS.stat(pid), stat.startTime == tree.main.startTime, stat.state == "T"
        else { return }
        try? Pidfd.sendSignal(pidfd.raw, Signal.continue)
    }

    private func read() {
        while let output, bytes.count < Self.mostBytes {
            guard let more = try? Descriptor.read(output.raw, maximum: 16 << 10) else { return }
            guard !more.isEmpty else { break }
            bytes += more
        }
        finish()
    }

    private func finish() {
        guard !isOver else { return }
        stop()
        stacks = Self.parse(String(wire: bytes))
        bytes = []
        if let supervisor, let app { supervisor.reports.lookIsOver(self, app) }
    }

    private func stop() {
        guard !isOver else { return }
        isOver = true
        supervisor?.reports.looks -= 1
        timer?.cancel()
        source?.cancel()
        source = nil
        output = nil
        if let pidfd { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
    }

    /// Parses the output of `eu-stack`: `TID 12:`, then `#0 0x00007f… function - /path/of/file` for each frame.
    static func parse(_ text: String) -> [Int32: [String]] {
        var stacks: [Int32: [String]] = [:]
        var thread: Int32?
        for line in text.split(separator: "\n") {
            if line.hasPrefix("TID "), line.hasSuffix(":") {
                thread = Int32(line.dropFirst(4).dropLast())
            } else if line.hasPrefix("#"), let thread, stacks[thread, default: []].count < mostFrames {
                stacks[thread, default: []].append(frame(line))
            }
        }
        return stacks
    }

    private static func frame(_ line: Substring) -> String {
        let halves = line.components(around: " - ")
        let words = halves.0.split(separator: " ", maxSplits: 2)
        // The name of a C++ function contains blanks. For a function without a name, use its address.
        let name = words.count > 2 ? String(words[2]) : String(words.last ?? "")
        let file = halves.1.flatMap { $0.split(separator: "/").last }
        let trimmed = name.split(separator: " ").joined(separator: " ")
        return file.map { "\(trimmed) (\($0))" } ?? trimmed
    }
}

extension Substring {
    /// The text before and after the last occurrence of a separator; the second part is nil if the separator does not
    /// occur.
    fileprivate func components(around separator: String) -> (Substring, Substring?) {
        let pattern = Array(separator.utf8)
        let bytes = utf8
        var start = bytes.endIndex
        while let index = bytes.index(start, offsetBy: -1, limitedBy: bytes.startIndex) {
            start = index
            if bytes[index...].starts(with: pattern) {
                return (self[..<index], self[bytes.index(index, offsetBy: pattern.count)...])
            }
        }
        return (self, nil)
    }
}

extension Supervisor {
    /// The plan that launches `eu-stack`, and the pipe for its output; nil if `eu-stack` is not installed.
    fileprivate func lookPlan(
        _ app: AppRuntime,
        _ pid: Int32
    ) -> (plan: LaunchPlan, ends: (read: Descriptor, write: Descriptor))? {
        guard let path = Self.stackTool, let ends = try? Descriptor.pipe() else { return nil }
        let user: (uid: UInt32, gid: UInt32, groups: [UInt32])?
        do throws(LaunchError) {
            user = try launcher.credentials(of: app)
        } catch {
            return nil
        }
        let variables = [
            AppTag.helperVariable: "1", "TORPOR_MANAGER_SOCKET": runtime.socket, "TORPOR_APP": app.name,
            // Keep `eu-stack` from asking a server for debugging symbols.
            "DEBUGINFOD_URLS": "",
        ]
        var plan = LaunchPlan(
            app: app.name,
            incarnation: coordinator.machine(app.id).incarnation,
            executable: path,
            arguments: [path, "-m", "-n", "48", "-p", "\(pid)"],
            environment: LaunchEnvironment.inherited.entries(adding: variables)
        )
        plan.directory = "/"
        plan.isHelper = true
        plan.oomScoreAdjust = ProcessTree.oomScoreForChildren
        plan.user = user
        let addressSpace: Int32 = 9
        plan.limits = [(addressSpace, 1 << 30, 1 << 30)]
        plan.standardOutput = ends.write.raw
        return (plan, ends)
    }

    /// The path of the program `eu-stack`, which samples stacks; nil if it is not installed.
    package static var stackTool: String? {
        try? Executable.find("eu-stack", path: LaunchEnvironment.inherited["PATH"], directory: nil)
    }
}

extension Incarnation {
    /// Samples the stacks of the app before the app is told to end.
    var stackSampler: StackSampler? {
        get { slots[StackLookSlot.self] }
        set { slots[StackLookSlot.self] = newValue }
    }
}

private enum StackLookSlot: Slot { typealias Value = StackSampler }
