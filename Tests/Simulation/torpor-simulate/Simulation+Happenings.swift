// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux
import Varlink

/// What may happen while torpord waits.
extension Simulation {
    var livingProcesses: [ProcessModel] {
        processes.values.filter(\.isAlive).sorted { $0.pid < $1.pid }
    }

    /// One thing, of all that can happen now.
    func happen() throws {
        let isIdle = sim_state().pointee.is_ready == 0
        if happens(habits.kills, of: 1000), sim_state().pointee.is_calm == 0 {
            if happens(1, of: 3) {
                note("torpord is killed while it waits")
                return sim_kill_torpord()
            }
            sim_state().pointee.kill_at = sim_state().pointee.calls + 1 + sim_random(400)
        }
        if sim_keeper_has_mail() != 0, happens(2, of: 3) {
            _ = try keeperReads()
            return
        }
        if happens(habits.calls, of: 100), !isResting { return askSomething() }
        if happens(1, of: 4), !clients.isEmpty { return try lookAtClients() }
        if try actInWorld() { return }
        if isIdle { passTime() }
    }

    func happenInWorld() throws {
        if !(try actInWorld()) { passTime() }
    }

    /// The next deadline comes, or less time passes than that.
    func passTime() {
        // The keeper is quick.
        if sim_keeper_has_mail() != 0 {
            now += 1_000_000 * Int64(random(20))
            return
        }
        let deadline = sim_state().pointee.next_deadline
        if deadline == .max || !isRunning {
            now += 1_000_000 * Int64(1 + random(50))
        } else if deadline > now, happens(3, of: 4) {
            now = deadline
        } else {
            now += min(max(0, deadline - now), 1_000_000 * Int64(1 + random(200)))
        }
    }

    // MARK: Processes

    /// A process does something; false when none can.
    private func actInWorld() throws -> Bool {
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
        process.letGo()
        if parent == Int32(SIM_KEEPER) {
            sim_keeper_exited(kernel)
        } else {
            sim_reap(kernel)
        }
    }

    private func execute(_ process: ProcessModel, _ kernel: UnsafeMutablePointer<sim_process>) {
        // It may be killed before.
        let number = sim_take_signal(kernel)
        if number == Signal.kill { return endProcess(process, kernel, signal: number) }
        if happens(habits.failsToExecute, of: 30), sim_state().pointee.is_calm == 0 {
            sim_keeper_exec(process.pid, 15, happens(1, of: 2) ? 2 : 13)
            return endProcess(process, kernel, status: 127)
        }
        process.hasExecuted = true
        process.notifySocket = variable("NOTIFY_SOCKET", kernel)
        process.appSocket = variable("TORPOR_APP_SOCKET", kernel)
        sim_keeper_exec(process.pid, 0, 0)
        if process.app.kind == .delegate, process.isMain, !process.isHelper {
            process.delegate = DelegateModel(
                path: process.appSocket,
                pid: process.pid,
                incarnation: process.incarnation
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
        case Signal.terminate where happens(habits.isStubborn, of: 6): process.isEnding = false
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
        process.letGo()
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
            let had = delegate.hasWork
            delegate.hear()
            if isCalm || !happens(habits.silence, of: 4) { delegate.answer() }
            if had, isCalm || happens(1, of: 2) { return true }
        }
        if !process.hasSaidReady, process.isMain, process.app.kind == .notify {
            if isCalm || happens(1, of: 1 + habits.silence) {
                process.hasSaidReady = sim_tell_as(process.notifySocket, process.pid, "READY=1\nSTATUS=up") == 0
                note("\(process.app.name) says READY=1")
            }
            return true
        }
        if isCalm { return false }
        if happens(habits.lines, of: 30) {
            write(process)
            return true
        }
        if happens(habits.forks, of: 200), processes.count < 60 {
            fork(process, kernel)
            return true
        }
        if happens(habits.exits, of: 300) {
            write(process)
            endProcess(process, kernel, status: Int32(random(3)))
            return true
        }
        if happens(habits.crashes, of: 400) {
            endProcess(process, kernel, signal: [6, 9, 11][random(3)])
            return true
        }
        if process.isMain, process.app.kind == .notify, happens(1, of: 20) {
            let said = ["WATCHDOG=1", "STATUS=at work", "EXTEND_TIMEOUT_USEC=1000000", "RELOADING=1\nMONOTONIC_USEC=1"]
            _ = sim_tell_as(process.notifySocket, process.pid, said[random(said.count)])
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
            process.app.lines.append(line)
        } else {
            note("no room for a line of \(process.pid): \(count < 0 ? sim_errno() : 0)")
            if count < 0, sim_errno() == 32 { problem = "process \(process.pid) of \(process.app.name) finds nobody who reads its output" }
        }
    }

    /// The keeper was asked to launch something.
    func launched(_ event: sim_event) throws {
        guard let kernel = sim_find(event.pid) else { return }
        let name = withUnsafePointer(to: &kernel.pointee.app) {
            String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
        }
        guard let app = apps.first(where: { $0.name == name }) else { throw Violation("\(name) is no app, and launched") }
        let isHelper = kernel.pointee.is_helper != 0
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

    // MARK: Clients

    private func askSomething() {
        guard clients.count < 12 else { return }
        let app = apps[random(apps.count)].name
        let some: JSON = happens(1, of: 6) ? .strings(apps.map(\.name)) : .strings([app])
        let wait = JSON.bool(happens(1, of: 2))
        let verb: JSON = ["apps": some, "wait": wait, "timeout_ms": .int(Int64(1 + random(20_000)))]
        let (method, parameters): (String, JSON)
        switch random(22) {
        case 0, 1: (method, parameters) = ("Start", verb)
        case 2, 3: (method, parameters) = ("Stop", verb)
        case 4: (method, parameters) = ("Restart", verb)
        case 5, 6: (method, parameters) = ("Foreground", verb)
        case 7, 8: (method, parameters) = ("Background", verb)
        case 9, 10, 11: (method, parameters) = ("Suspend", verb)
        case 12, 13: (method, parameters) = ("Resume", verb)
        case 14: (method, parameters) = ("Interrupt", ["apps": some, "end": .bool(happens(1, of: 2))])
        case 15: (method, parameters) = ("Kill", verb)
        case 16: (method, parameters) = ("Reset", ["apps": some])
        case 17: (method, parameters) = ("List", .emptyObject)
        case 18: (method, parameters) = ("Status", ["app": .string(app)])
        case 19: (method, parameters) = ("Logs", ["app": .string(app), "lines": 20])
        case 20: (method, parameters) = ("Events", ["limit": 10])
        default: (method, parameters) = ("Hold", ["apps": some, "for_ms": 3000, "reason": "a test"])
        }
        ask(method, parameters)
    }

    func ask(_ method: String, _ parameters: JSON) {
        guard let client = ClientModel(root + "/run/io.torpor", method, parameters, deaths: deaths) else { return }
        note("a client asks \(client.what)")
        clients.append(client)
    }

    func lookAtClients() throws {
        for client in clients {
            client.look(deaths: deaths)
            if let problem = client.problem { throw Violation("a client of \(client.what) \(problem)") }
        }
        clients.removeAll { client in
            // It stays for a while, should there be a second answer.
            guard client.isOver, client.hasEnded || happens(1, of: 8) else { return false }
            client.close()
            return true
        }
    }
}
