// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import MemoryPressure
import Permissions
import Policies
import PolicyHost
import Processes
import Supervisor
import TorporAPI
import VarlinkServer

/// Checks whether this machine offers what torpord needs. For each missing feature, says what does not work without it.
struct Doctor {
    private let supervisor: Supervisor
    private let exposures: [DoctorCheck]

    /// - Parameter exposures: the result of ``exposures(_:)``.
    init(_ supervisor: Supervisor, exposures: [DoctorCheck]) {
        self.supervisor = supervisor
        self.exposures = exposures
    }

    func checks() -> [DoctorCheck] {
        let freezes = supervisor.place.cgroups.map { File.exists($0.base + "/cgroup.freeze") } ?? false
        return [
            cgroups, runtimeDirectory, store, stacks, supervisor.interruptions.check, connections,
            MachineChecks.freezer(freezes),
        ]
            + session + controllers
            + [
                shortMemory, ownMemory,
            ] + sandboxes + bundles + exposures + policies + MachineChecks(apps: supervisor.apps.count).all
    }

    private var session: [DoctorCheck] {
        let modes = [supervisor.wakes.locationMode.check, supervisor.wakes.bluetoothMode.check]
        return modes.compactMap(\.self) + [supervisor.protection.check].compactMap(\.self) + supervisor.desktop.checks
    }

    private var controllers: [DoctorCheck] {
        guard let tree = supervisor.place.cgroups, let mount = Cgroup.mount else {
            return MachineChecks.controllers([]) { _ in "there are no cgroups for apps" }
        }
        return MachineChecks.controllers(tree.controllers) {
            Cgroup.obstacle(to: $0, at: tree.place, mount: mount) ?? "it could not be enabled for \(tree.base)"
        }
    }

    /// Whether the kernel can confine apps; empty if no app has a sandbox.
    private var sandboxes: [DoctorCheck] {
        let names = supervisor.apps.filter { $0.specification.sandbox.mode != nil }.map(\.name)
        guard let first = names.first else { return [] }
        let denials = supervisor.permissions.denials.check
        let version = Landlock.version
        let whose = names.count == 1 ? "\(first) is" : "\(first) and \(names.count - 1) more are"
        return [
            DoctorCheck(
                name: "sandboxes",
                ok: version > 0,
                value: version > 0 ? "Landlock \(version)" : nil,
                message: version > 0
                    ? nil
                    : "\(whose) not launched, since \(KernelRelease.landlockObstacle), or remove sandbox"
            )
        ] + (denials.map { [$0] } ?? [])
    }

    /// A check for each file of the configuration that every user of the machine can change. It looks at the files, and
    /// so may wait for a disk or for a server of files.
    static func exposures(_ sources: ConfigurationSources) -> [DoctorCheck] {
        var told: Set<String> = []
        return sources.files.compactMap { file in
            let path = Path.join(sources.workingDirectory, file.path)
            guard let exposure = FileExposure(of: path), told.insert(exposure.path).inserted else { return nil }
            return DoctorCheck(name: "configuration", ok: false, value: path, message: exposure.sentence)
        }
    }

    /// A check for each bundle whose latest version failed its first launches.
    private var bundles: [DoctorCheck] {
        supervisor.launcher.putBack.sorted { $0.key < $1.key }.map { name, versions in
            DoctorCheck(
                name: "bundle \(name)",
                ok: false,
                value: versions.current,
                message:
                    "version \(versions.failed) did not come up in its first two launches, so \(versions.current) was "
                    + "put back: install a version that works, or try it again (‘torpor rollback \(name)’, ‘torpor apply’)"
            )
        }
    }

    /// For each policy, a check whether the policy works and whether it is confined.
    private var policies: [DoctorCheck] {
        (supervisor.policyManager?.chain.slots ?? []).map { slot in
            var check = DoctorCheck(name: "policy \(slot.settings.name)", ok: true, value: slot.state.name)
            switch slot.state {
            case .refused(let reason), .quarantined(let reason):
                check.ok = false
                let end = slot.retryAt == nil ? "until" : "until it is tried again, in an hour at most, or by"
                check.message =
                    "\(reason); the apps are managed without it \(end) ‘torpor policy reload \(slot.settings.name)’"
            case .waiting:
                check.ok = false
                check.message = "\(slot.lastFailure ?? "it failed"); torpord reloads it"
            case .loading: break
            case .ready:
                let confinement = slot.description?.confinement ?? []
                guard slot.settings.isIsolated, !confinement.contains([.files, .systemCalls]) else { break }
                let names = [(PolicyConfinement.files, "Landlock"), (.systemCalls, "seccomp")]
                let missing = names.filter { !confinement.contains($0.0) }.map(\.1).joined(separator: " and ")
                check.ok = false
                check.value = "it works, but is not fully confined"
                check.message =
                    "torpord's processes cannot use \(missing) here (the kernel lacks it, or a filter of system calls "
                    + "refuses it): use only policies that you would trust with the supervisor's rights"
            }
            return check
        }
    }

    private var store: DoctorCheck {
        let path = supervisor.runtime.state + "/torpor.db"
        return DoctorCheck(
            name: "store",
            ok: supervisor.persistence.trouble == nil && supervisor.persistence.losses.sentence == nil,
            value: path,
            message: supervisor.persistence.trouble ?? supervisor.persistence.losses.sentence
        )
    }

    private var stacks: DoctorCheck {
        let tool = Supervisor.stackTool
        return DoctorCheck(
            name: "stacks of programs",
            ok: tool != nil,
            value: tool,
            message: tool == nil
                ? "eu-stack is not on the PATH: reports of stuck apps have kernel stacks, but no stacks of their "
                    + "programs; install elfutils" : nil
        )
    }

    /// Whether the kernel lets torpord copy the sockets of other processes. This is tested with torpord's parent,
    /// torpor-keeper: torpord has the same rights over torpor-keeper as over apps.
    private var connections: DoctorCheck {
        let obstacle = Pidfd.copyObstacle(ThisProcess.parent)
        return DoctorCheck(
            name: "sockets of apps",
            ok: obstacle == nil,
            value: obstacle == nil ? "pidfd_getfd" : nil,
            message: obstacle.map {
                "sockets that apps open themselves cannot be copied (\($0)), since \(whyNotCopied($0)). Until then "
                    + "torpord polls the kernel's tables: clients of a suspended app wait up to half a second longer, "
                    + "connections over vsock or in other network namespaces do not wake it, and a suspended app that "
                    + "ends loses its ports and is launched again"
            }
        )
    }

    /// A text that says why the kernel does not let torpord copy sockets, and what to do about it.
    private func whyNotCopied(_ obstacle: Errno) -> String {
        func field(_ name: String) -> String { (try? ProcFS.statusField(ThisProcess.pid, name)).flatMap { $0 } ?? "" }
        let mayTrace = UInt64(field("CapEff"), radix: 16).map { $0 >> 19 & 1 == 1 } ?? false
        let scope = (try? File.readString("/proc/sys/kernel/yama/ptrace_scope", limit: 16)) ?? "0"
        let isOfYama = !mayTrace && !scope.hasPrefix("0")
        let isFiltered = field("Seccomp") == "2"
        if isFiltered, isOfYama {
            return "a filter of system calls (seccomp, of a container or a service) or the sysctl "
                + "kernel.yama.ptrace_scope forbids it: allow pidfd_getfd in the filter, and give torpord CAP_SYS_PTRACE"
        }
        if isFiltered {
            return "a filter of system calls (seccomp, of a container or a service) forbids it: allow pidfd_getfd there"
        }
        if isOfYama {
            return "the sysctl kernel.yama.ptrace_scope forbids it: set it to 0, or give torpord CAP_SYS_PTRACE"
        }
        return mayTrace
            ? "the kernel is older than Linux 5.6, or a security module forbids it"
            : "torpord does not have CAP_SYS_PTRACE, the kernel is older than Linux 5.6, or a security module forbids it"
    }

    private var runtimeDirectory: DoctorCheck {
        let path = supervisor.runtime.path
        guard (try? File.isInMemory(path)) == false else {
            return DoctorCheck(name: "runtime directory", ok: true, value: path)
        }
        return DoctorCheck(
            name: "runtime directory",
            ok: false,
            value: path,
            message: "\(path) is on a disk, so each state change of an app may wait for the disk: choose a "
                + "runtime_directory on a tmpfs, such as one below /run"
        )
    }

    private var shortMemory: DoctorCheck {
        let watch = supervisor.memoryWatch
        return DoctorCheck(
            name: "when memory is short",
            ok: watch.trouble == nil,
            value: "level \(watch.level.rawValue)",
            message: watch.trouble
        )
    }

    /// Whether torpord has locked its memory: determined from VmLck (such as `1234 kB`), CAP_IPC_LOCK and
    /// RLIMIT_MEMLOCK.
    private var ownMemory: DoctorCheck {
        func field(_ name: String) -> String { (try? ProcFS.statusField(ThisProcess.pid, name)).flatMap { $0 } ?? "" }
        let kilobytes = field("VmLck").split(separator: " ").first.flatMap { UInt64($0) } ?? 0
        let capabilities = UInt64(field("CapEff"), radix: 16) ?? 0
        let isUnlimited = (try? ThisProcess.limit(8).soft) == UInt64.max
        return MemoryChecks.ownMemory(
            lockedBytes: kilobytes * 1024,
            isAllowed: capabilities >> 14 & 1 == 1 || isUnlimited
        )
    }

    private var cgroups: DoctorCheck {
        if let tree = supervisor.place.cgroups { return DoctorCheck(name: "cgroup v2", ok: true, value: tree.base) }
        return DoctorCheck(name: "cgroup v2", ok: false, message: supervisor.place.trouble)
    }
}

extension ControlService {
    /// How long the doctor waits for the disk with the configuration's files.
    private static let doctorPatience = Duration.seconds(5)

    /// Replies with all checks of the machine.
    func doctor(_ reply: Reply) {
        supervisor.permissions.denials.look { [weak self] in
            self?.whenLossesAreKnown { [weak self] in self?.examine(reply) }
        }
    }

    /// Calls `then` once it is known which files of the store that were set aside are still there. Waits for the disk
    /// only if there were some, and not for long.
    func whenLossesAreKnown(_ then: @escaping () -> Void) {
        let losses = supervisor.persistence.losses
        guard losses.sentence != nil else { return then() }
        let answer = Once<Void> { _ in then() }
        losses.look { answer.give(()) }
        answer.timer = try? loop.timer { answer.give(()) }
        answer.timer?.arm(after: .milliseconds(250))
    }

    private func examine(_ reply: Reply) {
        let answer = Once { [weak self] (exposures: [DoctorCheck]) in
            guard let self else { return }
            reply.send(Replies.doctor(Doctor(self.supervisor, exposures: exposures).checks()))
        }
        exposureReads.ask(supervisor.configuration.sources) { answer.give($0) }
        answer.timer = try? loop.timer {
            let limit = Quantity.text(Self.doctorPatience)
            let text = "the disk with the configuration's files did not answer within \(limit)"
            answer.give([DoctorCheck(name: "configuration", ok: false, message: text)])
        }
        answer.timer?.arm(after: Self.doctorPatience)
    }
}
