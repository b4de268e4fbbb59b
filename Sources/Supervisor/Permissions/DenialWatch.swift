// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
package import Linux
package import Permissions
import Processes
package import TorporAPI
import Varlink
import WireText

/// Reports which accesses the kernel has denied to sandboxed apps, and ends apps for such accesses if `on_denied` says
/// so.
///
/// The kernel reports denials as audit records, which torpord reads if auditing is enabled; torpord never enables it. A
/// record names a Landlock domain. The first record of each domain is followed by another one with the pid of the
/// process that created the domain, which is the app's main process at its launch. Another thread reads the records in
/// batches and pauses after each batch, so that an app which is denied accesses all the time costs little.
package final class DenialWatch: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    private unowned(unsafe) let keeping: any DescriptorKeeping
    private let open: () throws(Errno) -> AuditRecords
    private let worker: BackgroundWorker
    /// The user that an app runs as; nil if it is not known.
    package var owner: (AppRuntime) -> UInt32? = { _ in Users.effectiveUID }
    private var records: AuditRecords?
    private var source: IOSource?
    private var timer: TimerSource?
    /// Why the records cannot be read; nil if they can be, or if no app needs them.
    private var failure: Errno?
    /// Whether audit is enabled, as the kernel last reported; nil if it has not reported that.
    private var isEnabled: Bool?
    /// Stores ``domains`` for the next torpord, because the kernel reports the creator of a domain only once.
    private lazy var kept = PersistedBytes(keeping, log, named: DescriptorName.denials, most: 128 << 10)
    /// When the loss of denial records was last reported.
    private var lossToldAt: Duration?
    /// The run of an app (name and incarnation) that each known domain belongs to.
    private var domains: [UInt64: Run] = [:]
    /// Domains whose app is not known, oldest first. Either the creating process belongs to no app, or torpord has not
    /// yet learned that the app runs.
    private var strange: [Strange] = []
    /// The main processes of runs that have ended, oldest first. They are kept because audit records about them may
    /// still arrive.
    private var past: [(process: Int32, run: Run)] = []

    private struct Run {
        let app: String
        let incarnation: UInt32
    }

    private struct Strange {
        let domain: UInt64
        let since: Duration
        /// The process that created the domain, and the user of that process.
        var maker: (process: Int32, user: UInt32)?
        var denials: [(denial: Denial, times: Int)] = []
    }

    /// The result of one read of the audit socket.
    private struct Heard: Sendable {
        var records: [(record: DenialRecord, times: Int)] = []
        var isLossy = false
        var failure: Errno?
    }

    /// The most records that are read at once.
    private static let batch = 512
    /// The time between two batches.
    private static let pause = Duration.milliseconds(100)
    private static let mostDomains = 1024
    private static let mostStrange = 64
    private static let mostDenialsOfStrange = 16
    private static let mostPast = 256
    /// The time for which a domain without a known app is kept. It is enough, because the report of a launch and its
    /// audit record arrive at almost the same time.
    private static let patience = Duration.seconds(10)

    /// - Parameter open: opens the socket on which the kernel sends audit records.
    package init(
        _ engine: Engine,
        _ recorder: Recorder,
        _ keeping: any DescriptorKeeping,
        _ open: @escaping () throws(Errno) -> AuditRecords = DenialWatch.listen
    ) {
        self.engine = engine
        self.recorder = recorder
        self.keeping = keeping
        self.open = open
        worker = BackgroundWorker(engine.loop, named: "denials")
    }

    /// Opens the kernel's audit socket. In tests, opens a socket at which records in the same format arrive.
    package static func listen() throws(Errno) -> AuditRecords {
        guard let path = ThisProcess.environment("TORPOR_TEST_AUDIT") else { return try AuditRecords() }
        return AuditRecords(taking: try Sockets.bindDatagram(path: path, mode: 0o600))
    }

    // MARK: Taking over

    /// Takes over what an earlier torpord has left: the audit socket with its unread records, and the list of domains
    /// with their apps.
    package func claim() {
        if let socket = keeping.inheritance.take(DescriptorName.audit).first { records = AuditRecords(taking: socket) }
        for line in (kept.bytes ?? []).split(separator: UInt8(ascii: "\n")).prefix(Self.mostDomains) {
            let words = line.split(separator: UInt8(ascii: " ")).map { String(wire: $0) }
            guard words.count == 3, let domain = UInt64(words[0], radix: 16), let number = UInt32(words[2]) else {
                continue
            }
            domains[domain] = Run(app: words[1], incarnation: number)
        }
    }

    private func keep() {
        let lines = domains.map { "\(String($0.key, radix: 16)) \($0.value.app) \($0.value.incarnation)" }
        kept.keep(Array(lines.joined(separator: "\n").utf8))
    }

    /// The descriptors that a new torpor-keeper must hold.
    var held: [(name: String, descriptors: [Int32])] {
        kept.held + (records.map { [(DescriptorName.audit, [$0.descriptor.raw])] } ?? [])
    }

    // MARK: Listening

    /// Begins to listen if the denials of a running app are needed. Called after the takeover.
    package func begin() {
        if records != nil || apps.contains(where: { isHeard($0) && $0.run.tree != nil }) { listenNow() }
    }

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        if from == .notRunning, source == nil, isHeard(app) { listenNow() }
    }

    private func isHeard(_ app: AppRuntime) -> Bool {
        app.specification.sandbox.mode != nil && app.specification.sandbox.onDenied != .ignore
    }

    /// Begins to listen. Called before the launch of an app whose denials are needed, because the kernel may deny an
    /// access right after the launch.
    func listenNow() {
        guard source == nil, timer?.deadline == nil, Landlock.version >= Self.firstVersion else { return }
        do throws(Errno) {
            let records: AuditRecords
            if let open = self.records {
                records = open
            } else {
                records = try open()
                keeping.hold(DescriptorName.audit, records.descriptor.raw)
                self.records = records
            }
            failure = nil
            try watch(records)
        } catch {
            if failure != error { log.debug("denials are not reported: \(error)") }
            failure = error
        }
    }

    /// The first version of Landlock that reports denials.
    private static let firstVersion = 7

    private func watch(_ records: AuditRecords) throws(Errno) {
        source = try loop.watch(records.descriptor.raw, .readable) { [weak self] _ in self?.read() }
    }

    private func read() {
        guard let records else { return }
        // Do not watch the descriptor while the worker reads: unread records keep it readable, so the event loop would
        // never sleep.
        source?.cancel()
        let raw = records.descriptor.raw
        worker.ask {
            Self.read(raw)
        } _: { [weak self] heard in
            // Keep the descriptor open until the worker has read from it.
            withExtendedLifetime(records) { self?.take(heard) }
        }
    }

    private static func read(_ descriptor: Int32) -> Heard {
        let batch = AuditRecords.read(descriptor, atMost: batch)
        var heard = Heard(isLossy: batch.isLossy, failure: batch.failure)
        var places: [DenialRecord: Int] = [:]
        for raw in batch.records {
            guard let record = DenialRecord(type: raw.type, raw.text) else { continue }
            if let place = places[record] {
                heard.records[place].times += 1
            } else {
                places[record] = heard.records.count
                heard.records.append((record, 1))
            }
        }
        return heard
    }

    private func take(_ heard: Heard) {
        if let failure = heard.failure {
            log.warning("denials are no longer reported: \(failure)")
            keeping.release(DescriptorName.audit)
            (records, source, self.failure) = (nil, nil, failure)
        }
        for (record, times) in heard.records {
            switch record {
            case .denied(let domain, let denial):
                if let run = domains[domain] {
                    tell(denial, times, run)
                } else {
                    wait(for: domain) { strange in
                        if strange.denials.count < Self.mostDenialsOfStrange { strange.denials.append((denial, times)) }
                    }
                }
            case .made(let domain, let process, let user, let program):
                // Ignore other creators: a process of an app may create a domain of its own, to restrict itself
                // further, and denials in that domain are not reported.
                guard domains[domain] == nil, Self.isKeeper(program) else { continue }
                wait(for: domain) { $0.maker = (process, user) }
                if let run = run(of: process, user) { found(domain, run) }
            case .gone(let domain):
                strange.removeAll { $0.domain == domain }
                if domains.removeValue(forKey: domain) != nil { keep() }
            }
        }
        if heard.isLossy, lossToldAt.map({ now - $0 >= DenialLedger.window }) ?? true {
            lossToldAt = now
            log.notice("the kernel had no room for some denials: they are not reported")
        }
        rest()
    }

    private func rest() {
        guard records != nil else { return }
        if timer == nil {
            timer = try? loop.timer { [weak self] in
                guard let self else { return }
                timer?.disarm()
                source = nil
                listenNow()
            }
        }
        timer?.arm(after: Self.pause)
    }

    // MARK: Whose domain it is

    /// Whether the program is torpor-keeper. Its child process creates the domain before it executes the app's program.
    private static func isKeeper(_ program: String) -> Bool {
        program.split(separator: "/").last?.utf8.starts(with: "torpor-keeper".utf8) ?? false
    }

    private func wait(for domain: UInt64, _ change: (inout Strange) -> Void) {
        if let index = strange.firstIndex(where: { $0.domain == domain }) { return change(&strange[index]) }
        strange.removeAll { now - $0.since > Self.patience }
        if strange.count >= Self.mostStrange { strange.removeFirst() }
        var new = Strange(domain: domain, since: now)
        change(&new)
        strange.append(new)
    }

    /// The run whose main process had this pid, if that process ran as this user. The user is compared because pids are
    /// used again: a process of another user may have had the same pid, and may have had the name of torpor-keeper.
    private func run(of process: Int32, _ user: UInt32) -> Run? {
        if let app = apps.first(where: { $0.run.tree?.leader.pid == process }), let tree = app.run.tree {
            return owner(app) == user ? Run(app: app.name, incarnation: tree.tag.incarnation) : nil
        }
        guard let run = past.last(where: { $0.process == process })?.run, let id = coordinator.id(of: run.app),
            owner(apps[id]) == user
        else { return nil }
        return run
    }

    private func found(_ domain: UInt64, _ run: Run) {
        if domains.count >= Self.mostDomains, let other = domains.keys.min() { domains[other] = nil }
        domains[domain] = run
        keep()
        let waiting = strange.filter { $0.domain == domain }.flatMap(\.denials)
        strange.removeAll { $0.domain == domain }
        for (denial, times) in waiting { tell(denial, times, run) }
    }

    package func touched(_ apps: [AppRuntime]) {
        guard !strange.isEmpty else { return }
        for app in apps {
            guard let tree = app.run.tree else { continue }
            for one in strange {
                guard let maker = one.maker, maker.process == tree.leader.pid, maker.user == owner(app) else {
                    continue
                }
                found(one.domain, Run(app: app.name, incarnation: tree.tag.incarnation))
            }
        }
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard let tree = app.run.tree, isHeard(app) else { return }
        if past.count >= Self.mostPast { past.removeFirst() }
        past.append((tree.leader.pid, Run(app: app.name, incarnation: tree.tag.incarnation)))
    }

    package func forget(_ app: AppRuntime) {
        past.removeAll { $0.run.app == app.name }
        let count = domains.count
        domains = domains.filter { $0.value.app != app.name }
        if domains.count != count { keep() }
    }

    // MARK: Telling

    private func tell(_ denial: Denial, _ times: Int, _ run: Run) {
        guard let id = coordinator.id(of: run.app) else { return }
        let app = apps[id]
        guard isHeard(app) else { return }
        let rule = app.specification.sandbox.onDenied
        let declared = denial.covering(app.specification.sandbox.declarations)
        let standing = Standing(denial, declared, app)
        let text = "may not \(denial.text)" + standing.text
        var log = app.denials ?? DenialLog()
        let untold = log.ledger.take(denial, times: times, now: now)
        log.last = DenialInfo(at: Clock.realtimeMicroseconds(), text: text)
        app.denials = log
        if let untold {
            recorder.note(
                app,
                .denied,
                incarnation: run.incarnation,
                text: text + (untold > 0 ? " (\(untold) more were denied and not told)" : ""),
                details: details(denial, standing, untold)
            )
        }
        guard rule == .end, declared.isEmpty, denial.permission != nil else { return }
        let machine = machine(app)
        guard machine.isAlive, machine.incarnation == run.incarnation, machine.transition != .terminating else {
            return
        }
        app.run.undeclaredAccess = "tried to \(denial.text), for which it declares no permission"
        uninterrupted { [weak self] in try? self?.request(.stop(.noPurposeString), of: id) }
    }

    private func details(_ denial: Denial, _ standing: Standing, _ untold: Int) -> JSON {
        var details: JSONObject = [
            "blockers": .strings(denial.blockers), "permission": .optional(standing.name),
            "state": .string(standing.word), "untold": .int(Int64(untold)),
        ]
        switch denial.object {
        case .path(let path): details["path"] = .string(path)
        case .port(let port): details["port"] = .int(Int64(port))
        case .process, .abstract, .nothing: break
        }
        return .object(details)
    }

    /// What the app's configuration and the users' answers say about an access that was denied.
    private struct Standing {
        /// The name of the permission that covers the access, whether or not the app declares it; nil if no permission
        /// does.
        var name: String?
        /// `asked`, `denied`, `allowed`, `undeclared`, or `none` if no permission covers the access.
        var word: String
        /// The end of a sentence about the denied access.
        var text: String

        init(_ denial: Denial, _ declared: [PermissionDeclaration], _ app: AppRuntime) {
            let states = app.specification.sandbox.states(app.permissionAnswers).filter { declared.contains($0.0) }
            let best = states.first { $0.state == .allowed } ?? states.first { $0.state == .asked } ?? states.first
            guard let best else {
                (name, word, text) = (denial.permission, "none", "")
                guard let name else { return }
                let hint = if case .port = denial.object { name + " with this port" } else { name }
                (word, text) = ("undeclared", ": it declares no permission for that, such as \(hint)")
                return
            }
            let name = best.declaration.name
            (self.name, word) = (name, best.state.rawValue)
            switch best.state {
            case .allowed: text = ": \(name) is allowed, and what it opens was not there when the app was launched"
            case .denied: text = ": \(name) is denied"
            case .asked: text = ": \(name) is withheld until it is answered, with ‘torpor permissions \(app.name)’"
            }
        }
    }

    // MARK: For persons

    /// Asks the kernel whether it reports denials, so that ``check`` has an answer. Does nothing if no app needs
    /// denials.
    package func look(_ completion: @escaping () -> Void) {
        guard apps.contains(where: isHeard), Landlock.version >= Self.firstVersion else { return completion() }
        worker.ask {
            Result<Bool, Errno> { () throws(Errno) in try AuditRecords.isEnabled() }
        } _: { [weak self] answer in
            self?.isEnabled = try? answer.get()
            completion()
        }
    }

    /// The `torpor doctor` check: whether torpord learns of denials, and what to do if it does not. Nil if no app has a
    /// sandbox. Call ``look(_:)`` first.
    package var check: DoctorCheck? {
        let heard = apps.filter(isHeard)
        guard !heard.isEmpty else { return nil }
        let obstacle = obstacle
        let needing = heard.first { $0.specification.sandbox.onDenied == .end }
        return DoctorCheck(
            name: "denials",
            ok: obstacle == nil || needing == nil,
            value: obstacle.map { "not seen, since " + $0 } ?? "seen",
            message: obstacle.flatMap { why in
                needing.map { "what \($0.name) is denied does not end it (on_denied = \"end\"), since \(why)" }
            }
        )
    }

    private var obstacle: String? {
        guard Landlock.version >= Self.firstVersion else { return "this kernel reports none: Linux 6.15 does" }
        if !Users.isRoot { return "only a supervisor of root may read what the kernel reports" }
        if let failure { return "audit cannot be read (\(failure)): the supervisor needs CAP_AUDIT_READ" }
        switch isEnabled {
        case true: return nil
        case false:
            return
                "audit is off: ‘auditctl -e 1’ (package auditd), or audit=1 on the kernel's command line, enables it for "
                + "the whole machine"
        case nil: return "it cannot be found out whether audit is on, as in a container"
        }
    }
}

/// The accesses that were denied to an app since torpord started.
package struct DenialLog {
    package var ledger = DenialLedger()
    package var last: DenialInfo?
}

extension AppRuntime {
    /// The accesses that were denied to the app since torpord started; nil if there were none.
    package var denials: DenialLog? {
        get { slots[DenialLogSlot.self] }
        set { slots[DenialLogSlot.self] = newValue }
    }
}

private enum DenialLogSlot: Slot { typealias Value = DenialLog }

extension Incarnation {
    /// The access for which torpord has ended the app, because the app declares no permission for it; nil if this did
    /// not happen.
    var undeclaredAccess: String? {
        get { slots[UndeclaredAccessSlot.self] }
        set { slots[UndeclaredAccessSlot.self] = newValue }
    }
}

private enum UndeclaredAccessSlot: Slot { typealias Value = String }
