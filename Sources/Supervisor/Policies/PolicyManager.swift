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

/// The supervisor's side of its policies: shows them the apps, tells them what happens, and takes their advice where the
/// rules allow. There is none while no policy is configured and nobody records what one would be asked.
///
/// Nothing waits for a policy but launches, and those only where a policy wants to be asked about them.
package final class PolicyManager: LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    package let view: PolicyView
    package private(set) var chain: PolicyChain! = nil
    /// Apps of which the view does not show what is so now.
    var unseen: Set<AppID> = []
    /// Apps in the foreground: they are in use at present, whether anything of them changes or not.
    var inUse: Set<AppID> = []
    /// Apps that somebody else has asked something of since the question under way was asked.
    var askedMeanwhile: Set<AppID> = []
    var damping = GoalDamping()
    var measurements = Measurements()
    /// When the last round of measuring began.
    var measuredAt: Duration?
    /// Keeps policies from flooding the events with advice that changes little, again and again: by app and kind.
    var repetition = RateLimit<UInt64>(free: 8, interval: .seconds(5))
    /// Apps about which a policy has to wait, and is asked again then.
    package var damped: [AppID: TimerSource] = [:]
    /// What was told last of an app's advice that was not taken, so that the same is not told again and again.
    package var told: [String: String] = [:]
    /// Launches that a policy has put off, and until when.
    var putOff: [AppID: TimerSource] = [:]
    /// Which policy in this process is being asked, so that the next torpord knows whose doing a death was.
    private(set) var marks: PolicyMarks?
    private var whenLoaded: (() -> Void)?
    private var clock: ClockWatch?
    private var clockSource: IOSource?
    /// Those who wait until a policy that is being loaded comes to another state.
    package var whenSettled: [(name: String, work: () -> Void)] = []
    let trace = PolicyTraceFeed()
    /// When apps last sent WATCHDOG=1, microseconds.
    var lastHeartbeats: [AppID: Int64] = [:]
    /// An ordinary user whom nothing belongs to and whom hosts become; only root can.
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

    /// Goes by what the configuration says now.
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

    /// Has policies that wait for a time asked at once when somebody sets the clock: theirs may be another one now.
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

    /// Calls back when every policy was loaded or could not be; that takes five seconds at most.
    package func whenLoaded(_ work: @escaping () -> Void) {
        guard chain.slots.contains(where: { $0.state == .loading }) else { return work() }
        whenLoaded = work
    }

    /// Calls back when that policy is no longer being loaded.
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

    /// Opens a policy's library anew; false when there is no policy of that name.
    package func reload(_ name: String) -> Bool {
        marks?.forget(name)
        return chain.reload(name)
    }
}

extension Supervisor {
    /// Goes by the policies of the configuration in force.
    package func govern() {
        if policyManager == nil {
            guard !configuration.supervisor.policies.isEmpty else { return }
            do throws(Errno) {
                try showPolicies()
            } catch {
                return log.error("policies cannot be shown the apps, so none is used: \(error)")
            }
        }
        policyManager?.appsChanged()
        policyManager?.configure()
    }

    /// From now on policies, or who records what they would be asked, can be shown the apps.
    package func showPolicies() throws(Errno) {
        let made = try PolicyManager(self)
        engine.add(made)
        policyManager = made
    }

    /// Calls back when the policies are loaded, or soon.
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

    /// Tables and arrays laid flat, in order of their keys.
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
            // Time zones are read from the machine's files once, and not looked for again.
            environment: ["TZ=:/etc/localtime", "\(AppTag.helperVariable)=1"]
        )
        launch.isHelper = true
        launch.passed = plan.descriptors
        launch.standardError = plan.standardError
        // Whoever is short of memory takes it first.
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
