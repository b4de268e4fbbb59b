// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux

/// What the processes of apps do.
extension Simulation {
    /// A process does something; false when none can.
    func actInWorld() throws -> Bool {
        let all = processes.values.sorted { $0.pid < $1.pid }
        guard !all.isEmpty else { return false }
        var place = random(all.count)
        for _ in all.indices {
            if try act(all[place]) { return true }
            place = (place + 1) % all.count
        }
        return false
    }

    private func act(_ process: ProcessModel) throws -> Bool {
        guard let kernel = process.kernel else {
            processes[process.pid] = nil
            return false
        }
        if kernel.pointee.state == CChar(UInt8(ascii: "Z")) {
            reap(process, kernel)
            return true
        }
        if sim_keeper_is_launching(process.pid) != 0 {
            execute(process, kernel)
            return true
        }
        let number = sim_take_signal(kernel)
        if number != 0 {
            take(number, process, kernel)
            return true
        }
        if process.isStopped { return false }
        return live(process, kernel)
    }

    private func reap(_ process: ProcessModel, _ kernel: UnsafeMutablePointer<sim_process>) {
        let parent = kernel.pointee.parent
        processes[process.pid] = nil
        process.closeDescriptors()
        if parent == Int32(SIM_KEEPER) {
            sim_keeper_exited(kernel)
        } else {
            sim_reap(kernel)
        }
    }

    private func execute(_ process: ProcessModel, _ kernel: UnsafeMutablePointer<sim_process>) {
        // A process may be killed before its exec.
        let number = sim_take_signal(kernel)
        if number == Signal.kill { return endProcess(process, kernel, signal: number) }
        if happens(behavior.failsToExecute, of: 30), sim_state().pointee.is_calm == 0 {
            sim_keeper_exec(process.pid, 15, happens(1, of: 2) ? 2 : 13)
            return endProcess(process, kernel, status: 127)
        }
        process.hasExecuted = true
        process.notifySocket = variable("NOTIFY_SOCKET", kernel)
        process.hasWatchdog =
            process.isMain && process.app.kind == .notify && !variable("WATCHDOG_USEC", kernel).isEmpty
        sim_keeper_exec(process.pid, 0, 0)
        if process.app.kind == .delegate, process.isMain, !process.isHelper {
            process.delegate = DelegateModel(
                path: variable("TORPOR_APP_SOCKET", kernel),
                pid: process.pid,
                incarnation: process.incarnation,
                ledger: ledger
            )
        }
    }

    private func variable(_ name: String, _ kernel: UnsafeMutablePointer<sim_process>) -> String {
        sim_variable(kernel, name).map { String(cString: $0) } ?? ""
    }

    private func take(_ number: Int32, _ process: ProcessModel, _ kernel: UnsafeMutablePointer<sim_process>) {
        switch number {
        case Signal.stop: kernel.pointee.state = CChar(UInt8(ascii: "T"))
        case Signal.continue: break
        case Signal.kill: endProcess(process, kernel, signal: number)
        case Signal.terminate where happens(behavior.ignoresTerm, of: 6): process.isEnding = false
        case Signal.terminate where happens(1, of: 2): process.isEnding = true
        default: endProcess(process, kernel, signal: number)
        }
    }

    func endProcess(
        _ process: ProcessModel,
        _ kernel: UnsafeMutablePointer<sim_process>,
        status: Int32? = nil,
        signal: Int32 = 0
    ) {
        process.closeDescriptors()
        if let status { sim_end_process(kernel, 1, status) } else { sim_end_process(kernel, 2, signal) }
    }

    /// What a process does by itself.
    private func live(_ process: ProcessModel, _ kernel: UnsafeMutablePointer<sim_process>) -> Bool {
        let isCalm = sim_state().pointee.is_calm != 0
        if process.isHelper {
            endProcess(process, kernel, status: happens(1, of: 10) && !isCalm ? 1 : 0)
            return true
        }
        if process.isEnding {
            if happens(1, of: 2) { write(process) }
            endProcess(process, kernel, status: 0)
            return true
        }
        if let delegate = process.delegate {
            var acted = delegate.receive()
            if isCalm || !happens(behavior.silence, of: 4) { acted = delegate.answer() || acted }
            if !isCalm, happens(behavior.appCalls, of: 100) { delegate.call(random(100)) }
            if let wrong = delegate.problem { problem = "process \(process.pid) of \(process.app.name) \(wrong)" }
            if acted, isCalm || happens(1, of: 2) { return true }
        }
        if !process.hasSaidReady, process.isMain, process.app.kind == .notify {
            if isCalm || happens(1, of: 1 + behavior.silence) {
                process.hasSaidReady = sim_send_as(process.notifySocket, process.pid, "READY=1\nSTATUS=up") == 0
                note("\(process.app.name) says READY=1")
            }
            return true
        }
        if isCalm {
            guard process.hasWatchdog, now - process.beatAt > 3_000_000_000 else { return false }
            process.beatAt = now
            return sim_send_as(process.notifySocket, process.pid, "WATCHDOG=1") == 0
        }
        if happens(behavior.lines, of: 30) {
            write(process)
            return true
        }
        if happens(behavior.forks, of: 200), processes.count < 60 {
            fork(process, kernel)
            return true
        }
        if happens(behavior.exits, of: 300) {
            write(process)
            endProcess(process, kernel, status: Int32(random(3)))
            return true
        }
        if happens(behavior.crashes, of: 400) {
            endProcess(process, kernel, signal: [6, 9, 11][random(3)])
            return true
        }
        if process.isMain, process.app.kind == .notify, happens(1, of: 20) {
            let said = ["WATCHDOG=1", "STATUS=at work", "EXTEND_TIMEOUT_USEC=1000000", "RELOADING=1\nMONOTONIC_USEC=1"]
            _ = sim_send_as(process.notifySocket, process.pid, said[random(said.count)])
            return true
        }
        return false
    }

    private func fork(_ parent: ProcessModel, _ kernel: UnsafeMutablePointer<sim_process>) {
        guard let child = sim_fork_process(kernel) else { return }
        let model = ProcessModel(child.pointee.pid, parent.app, parent.incarnation, isMain: false, isHelper: false)
        model.hasExecuted = true
        processes[model.pid] = model
        note("\(parent.app.name) forks \(model.pid)")
    }

    /// A line into its log, if there is room.
    private func write(_ process: ProcessModel) {
        guard process.output >= 0 else { return }
        process.written += 1
        let line = "\(process.app.name) \(process.incarnation) \(process.pid) \(process.written)"
        let bytes = Array((line + "\n").utf8)
        let count = bytes.withUnsafeBytes { sim_write(process.output, $0.baseAddress, $0.count) }
        if count == bytes.count {
            process.app.lines.append(WrittenLine(text: line, deaths: deaths, keepers: keepers))
        } else {
            note("no room for a line of \(process.pid): \(count < 0 ? sim_errno() : 0)")
            if count < 0, sim_errno() == 32 {
                problem = "process \(process.pid) of \(process.app.name) has an output that nothing reads"
            }
        }
    }

    /// The keeper was asked to launch something.
    func launched(_ event: sim_event) throws {
        guard let kernel = sim_find(event.pid) else { return }
        let name = withUnsafePointer(to: &kernel.pointee.app) {
            String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
        }
        let isHelper = kernel.pointee.is_helper != 0
        guard let app = apps.first(where: { $0.name == name }) ?? (isHelper ? torpord : nil) else {
            throw Violation("\(name) is no app, and launched")
        }
        if !isHelper {
            let others = livingProcesses.filter { $0.app === app && !$0.isHelper }
            if let other = others.first {
                throw Violation("\(name) is launched as \(event.pid), and process \(other.pid) of it lives")
            }
            app.runs += 1
        }
        let process = ProcessModel(event.pid, app, kernel.pointee.incarnation, isMain: true, isHelper: isHelper)
        process.output = event.output
        if event.output >= 0 { sim_nonblocking(event.output) }
        process.passed = [event.input, event.error].filter { $0 >= 0 }
        processes[event.pid] = process
        withUnsafeBytes(of: event.passed) { bytes in
            process.passed += bytes.bindMemory(to: Int32.self).prefix(Int(event.passed_count))
        }
    }
}
