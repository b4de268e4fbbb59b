// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
package import EventLoop
import KeeperProtocol
package import Lifecycle
package import Linux
import MemoryPressure
package import Policies
package import PolicyHost
import Processes
import TorporPolicyABI

/// Connects policies to the supervisor: gives them data about apps, sends them events, and follows their advice where
/// the rules allow it. The manager exists only while a policy is configured, or while a client records the questions
/// that policies would be asked.
///
/// Only launches wait for a policy's answer, and only if a policy has asked to decide launches.
package final class PolicyManager: LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    package let view: PolicyView
    package private(set) var chain: PolicyChain! = nil
    /// Apps whose entry in the view is out of date.
    var unseen: Set<AppID> = []
    /// Apps in the foreground. They count as in use all the time, even if nothing about them changes.
    var inUse: Set<AppID> = []
    /// Apps for which a user or an event has requested a state after policies were last asked. Such a request overrides
    /// the advice of policies.
    var askedMeanwhile: Set<AppID> = []
    var damping = GoalDamping()
    var measurements = Measurements()
    /// When the last round of measuring began; nil if there was none.
    var measuredAt: Duration?
    /// Limits how often policies may repeat advice with small changes, by app and kind of advice.
    var repetition = RateLimit<UInt64>(free: 8, interval: .seconds(5))
    /// Apps about which a policy has given or changed its advice too often. When the timer fires, the policy is asked
    /// again.
    package var damped: [AppID: TimerSource] = [:]
    /// The text of the last report of advice that was not followed, by policy, app and kind of advice. It keeps the
    /// same report from being repeated.
    package var told: [String: String] = [:]
    /// Launches that a policy has delayed, each with the timer that ends the delay.
    var putOff: [AppID: TimerSource] = [:]
    /// Whether the policies are to be asked about the waiting launches, perhaps again, as soon as they are loaded.
    var asksAnew = true
    /// Records which policy is running in this process. If a policy crashes torpord, the next torpord reads here which
    /// one it was. Nil if the file cannot be opened.
    private(set) var marks: PolicyMarks?
    private var whenLoaded: (() -> Void)?
    private var clock: ClockWatch?
    private var clockSource: IOSource?
    /// Work that waits until the policy with this name is no longer being loaded.
    package var whenSettled: [(name: String, work: () -> Void)] = []
    let trace = PolicyTraceFeed()
    /// The time at which each app last sent WATCHDOG=1, in microseconds on the event loop's clock (CLOCK_MONOTONIC).
    var lastHeartbeats: [AppID: Int64] = [:]
    /// A user without privileges that owns no files. Policy hosts run as this user. Only root can change to another
    /// user.
    package let hostUser: (user: UInt32, group: UInt32)?

    package init(_ supervisor: Supervisor) throws(Errno) {
        self.supervisor = supervisor
        view = try PolicyView()
        hostUser = HostProcess.unprivilegedUser()
        let root = supervisor.memoryWatch.root
        chain = PolicyChain(
            loop: supervisor.loop,
            view: view,
            hosts: self,
            guarding: { [weak self] name, isAsked in self?.marks?.mark(isAsked ? name : "") },
            machineStalls: { (Pressure(on: .memory, root: root)?.some ?? 0) >= PolicyChain.stallShare }
        )
        chain.delegate = self
        view.system.started = supervisor.loop.now.microseconds
        for app in supervisor.apps { show(app) }
    }

    /// Applies the policies of the configuration in force.
    package func configure() {
        let supervisor = supervisor
        let configuration = supervisor.configuration
        let byName = Dictionary(configuration.policies.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let settings = configuration.supervisor.policies.compactMap { name in
            byName[name].map { PolicySettings($0, in: configuration.supervisor.policyDirectory) }
        }
        if marks == nil, settings.contains(where: { !$0.isIsolated }) {
            marks = PolicyMarks(path: supervisor.runtime.policyMarks)
        }
        chain.configure(settings, keepingOut: marks?.quarantined(among: settings) ?? [:])
    }

    /// Watches for changes of the wall clock. When the clock is set, policies that wait for a certain time are asked at
    /// once, because that time may have come.
    func watchClock() {
        guard clockSource == nil, chain.slots.contains(where: { $0.wants(TORPOR_EVENT_TIMER.rawValue) }) else { return }
        do throws(Errno) {
            let watch = try ClockWatch()
            clockSource = try supervisor.loop.watch(watch.descriptor.raw, .readable) { [weak self] _ in
                guard let self else { return }
                do throws(Errno) {
                    try self.clock?.again()
                } catch {
                    self.clockSource = nil
                }
                self.chain.askThoseWhoWait()
            }
            clock = consume watch
        } catch {
            supervisor.log.warning("policies are not told when the clock is set: \(error)")
        }
    }

    /// Calls back when every policy is loaded or has failed to load. This takes at most five seconds.
    package func whenLoaded(_ work: @escaping () -> Void) {
        guard chain.slots.contains(where: { $0.state == .loading }) else { return work() }
        whenLoaded = work
    }

    /// Calls `work` when the policy with this name is no longer being loaded.
    package func whenSettled(_ name: String, _ work: @escaping () -> Void) {
        guard chain.slots.contains(where: { $0.settings.name == name && $0.state == .loading }) else { return work() }
        whenSettled.append((name, work))
    }

    func goOnWhenLoaded() {
        guard let work = whenLoaded, !chain.slots.contains(where: { $0.state == .loading }) else { return }
        whenLoaded = nil
        work()
    }

    package func close() {
        chain.close()
        putOff = [:]
        damped = [:]
        clockSource?.cancel()
        clockSource = nil
    }

    /// Opens a policy's library again; false if there is no policy of that name.
    package func reload(_ name: String) -> Bool {
        marks?.forget(name)
        asksAnew = true
        return chain.reload(name)
    }
}

extension Supervisor {
    /// Applies the policies of the configuration in force.
    package func govern() {
        loop.later { [weak self] in self?.bringBackUngoverned() }
        if policyManager == nil {
            guard !configuration.supervisor.policies.isEmpty else { return }
            do throws(Errno) {
                try showPolicies()
            } catch {
                perform(coordinator.setAsksForAdmission(false, now: loop.now))
                return log.error("policies cannot be shown the apps, so none is used: \(error)")
            }
        }
        policyManager?.appsChanged()
        policyManager?.configure()
    }

    /// Brings apps back to the foreground that a policy had sent away which is not used any longer: nothing else would.
    private func bringBackUngoverned() {
        let deciding = Set(configuration.policies.filter { $0.mode != .advise }.map(\.name))
            .intersection(configuration.supervisor.policies)
        let left = apps.filter { app in
            guard let name = app.sentAwayBy, coordinator.machine(app.id).isAlive else { return false }
            return name.isEmpty ? deciding.isEmpty : !deciding.contains(name)
        }
        bringBack(left[...])
    }

    /// Brings the apps back, a few in each turn of the event loop.
    private func bringBack(_ rest: ArraySlice<AppRuntime>) {
        for app in rest.prefix(Self.broughtBackAtOnce) {
            guard let name = app.sentAwayBy else { continue }
            app.sentAwayBy = nil
            let goal = coordinator.machine(app.id).goal
            guard goal == .background || goal == .suspended else { continue }
            let whose = name.isEmpty ? "a policy" : "the policy \(name)"
            do throws(RequestError) {
                let actions = try coordinator.advise(.goal(.active), of: app.id, now: loop.now)
                let text = "is sent to active: \(whose), which had sent it to the background, is not used any longer"
                note(app, .advised, text: text, reason: name.isEmpty ? nil : name)
                uninterrupted { [self] in perform(actions) }
            } catch {
                log.info("\(app.name), which \(whose) had sent to the background, stays there: it \(error)")
            }
            record(app)
        }
        let rest = rest.dropFirst(Self.broughtBackAtOnce)
        guard !rest.isEmpty else { return }
        loop.later { [weak self] in self?.bringBack(rest) }
    }

    private static var broughtBackAtOnce: Int { 20 }

    /// Creates the policy manager, for policies or for a client that records the questions to policies.
    package func showPolicies() throws(Errno) {
        let made = try PolicyManager(self)
        engine.add(made)
        policyManager = made
    }

    /// Calls back when the policies are loaded, which takes some seconds at most.
    func whenGoverned(_ work: @escaping () -> Void) {
        guard let policyManager else { return work() }
        policyManager.whenLoaded(work)
    }
}

extension PolicySettings {
    package init(_ policy: PolicySpecification, in directory: String) {
        let path = policy.path.hasPrefix("/") ? policy.path : directory + "/" + policy.path
        self.init(name: policy.name, path: path)
        isIsolated = policy.isolation == .process
        onlyAdvises = policy.mode == .advise
        deadline = policy.deadline
        options = Self.flat(.table(policy.options), "")
    }

    /// Converts a value to options without nesting: the elements of tables and arrays become options of their own, in
    /// order of their keys.
    private static func flat(_ value: ConfigurationValue, _ key: String) -> [PolicyOption] {
        func inner(_ name: String) -> String { key.isEmpty ? name : key + "." + name }
        switch value {
        case .string(let text): return [PolicyOption(key: key, value: .string(text))]
        case .integer(let number): return [PolicyOption(key: key, value: .integer(number))]
        case .double(let number): return [PolicyOption(key: key, value: .number(number))]
        case .boolean(let flag): return [PolicyOption(key: key, value: .boolean(flag))]
        case .date(let text): return [PolicyOption(key: key, value: .date(text))]
        case .array(let elements): return elements.enumerated().flatMap { flat($1, inner("\($0)")) }
        case .table(let members):
            return members.sorted { $0.key < $1.key }.flatMap { flat($0.value, inner($0.key)) }
        }
    }
}

// MARK: Processes of their own

extension PolicyManager: PolicyHostLauncher {
    package func launch(
        _ plan: HostPlan,
        started: @escaping (Result<StartedHost, PolicyFailure>) -> Void,
        ended: @escaping (PolicyEnd) -> Void
    ) {
        let loop = supervisor.loop
        guard let program = HostProcess.findProgram() else {
            return loop.later { started(.failure(.notStarted(program: "torpor-policy-host", .noSuchFileOrDirectory))) }
        }
        var launch = LaunchPlan(
            app: "torpor.policy",
            incarnation: 1,
            executable: program,
            arguments: ["torpor-policy-host", plan.name],
            // With this TZ, glibc reads the time zone once, instead of checking its file at each call.
            environment: ["TZ=:/etc/localtime", "\(AppTag.helperVariable)=1"]
        )
        launch.isHelper = true
        launch.passed = plan.descriptors
        launch.standardError = plan.standardError
        // If memory is short, the kernel should kill the policy's process rather than an app.
        launch.oomScoreAdjust = 1000
        supervisor.keeper.launch(launch) { [weak supervisor] result in
            switch result {
            case .success(let launched):
                supervisor?.launcher.helpers[launched.pid] = { status in
                    switch status {
                    case .exited(let code): ended(.exited(code))
                    case .signaled(let signal, _): ended(.signalled(signal))
                    }
                }
                started(.success(StartedHost(pid: launched.pid, pidfd: launched.pidfd)))
            case .failure(let failure):
                started(.failure(.notStarted(program: failure.description, failure.errno)))
            }
        }
    }
}
