// SPDX-License-Identifier: Apache-2.0

import Linux

/// What the machine and this user offer a supervisor: the checks of `torpor doctor` that need no running supervisor.
public struct MachineChecks {
    /// The number of apps for which the machine must have enough resources.
    public let apps: Int

    /// Creates checks for this number of apps.
    public init(apps: Int) { self.apps = apps }

    /// All checks except those of cgroups, which depend on where the supervisor runs.
    public var all: [DoctorCheck] { MemoryChecks().all + [descriptors, processes, user, journal] }

    /// The checks of cgroups for a supervisor that this process would start.
    public var cgroups: [DoctorCheck] {
        guard let mount = Cgroup.mount else {
            return [
                DoctorCheck(
                    name: "cgroup v2",
                    ok: false,
                    message: "cgroup v2 is not mounted: apps are followed by session and descent instead"
                ),
                Self.freezer(false),
            ] + Self.controllers([]) { _ in "cgroup v2 is not mounted" }
        }
        let own = (try? ProcFS.cgroup(ThisProcess.pid)).flatMap { $0 } ?? "/"
        let place = own == "/" ? mount : mount + own
        let usable = File.isWritable(place + "/cgroup.procs") || Users.isRoot
        let at = usable ? place : mount
        let names = ((try? File.readString(at + "/cgroup.controllers")) ?? "")
            .split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init)
        return [
            DoctorCheck(
                name: "cgroup v2",
                ok: usable,
                value: usable ? place : nil,
                message: usable
                    ? nil
                    : "\(place) cannot be used from here: run torpord as root, in a unit with Delegate=yes, or by "
                        + "systemd-run --user --scope -p Delegate=yes"
            ),
            Self.freezer(
                usable && ((try? File.list(mount)) ?? []).contains { File.exists("\(mount)/\($0)/cgroup.freeze") }
            ),
        ]
            + Self.controllers(usable ? names : []) {
                Cgroup.obstacle(to: $0, at: at, mount: mount) ?? "it cannot be used from here"
            }
    }

    /// The check of the cgroup freezer, which suspends apps.
    public static func freezer(_ ok: Bool) -> DoctorCheck {
        DoctorCheck(
            name: "freezer",
            ok: ok,
            value: ok ? "cgroup.freeze" : nil,
            message: ok ? nil : "suspend_with = \"freezer\" falls back to SIGSTOP, which apps' parents can see"
        )
    }

    /// For each cgroup controller: the files that it adds to a cgroup, and what does not work without the controller.
    private static let purposes: [(controller: String, files: String, cost: String)] = [
        (
            "cpu", "cpu.weight, cpu.max",
            "the nice values of apps' sessions decide their processor shares, if at all, and cpu_max has no effect"
        ),
        (
            "io", "io.weight",
            "I/O priorities decide apps' disk shares, and only the scheduler BFQ obeys them"
        ),
        (
            "memory", "memory.max, memory.high, memory.low",
            "memory is counted per process, torpord and not the kernel enforces memory_limit, once a second, and "
                + "memory_high and memory_low have no effect"
        ),
        (
            "pids", "pids.max" + (TaskRoom.ofOneApp.map { ": \($0) tasks for an app without limits.tasks" } ?? ""),
            "limits.tasks has no effect, and nothing keeps an app from using up the machine's processes"
        ),
    ]

    /// Checks of the controllers of apps' cgroups. The first check lists the available controllers, and each further
    /// check is about a missing controller.
    ///
    /// - Parameter obstacle: returns why a controller is missing, as the end of a sentence.
    public static func controllers(_ found: [String], _ obstacle: (String) -> String) -> [DoctorCheck] {
        let had = purposes.filter { found.contains($0.controller) }
        let missing = purposes.filter { !found.contains($0.controller) }
        let text = had.map { "\($0.controller) (\($0.files))" }.joined(separator: ", ")
        let summary = had.isEmpty ? [] : [DoctorCheck(name: "controllers", ok: true, value: text)]
        return summary
            + missing.map { purpose in
                DoctorCheck(
                    name: "\(purpose.controller) controller",
                    ok: false,
                    message: "\(obstacle(purpose.controller)). Without it \(purpose.cost)"
                )
            }
    }

    private var descriptors: DoctorCheck {
        let limit = (try? ThisProcess.limit(7).hard) ?? 0
        let room = Int(clamping: limit) / 6
        return DoctorCheck(
            name: "descriptors",
            ok: room >= apps,
            value: "\(limit), enough for about \(room) apps",
            message: room >= apps ? nil : "raise LimitNOFILE= of the service, or ulimit -n"
        )
    }

    private var processes: DoctorCheck {
        let limit = (try? ThisProcess.limit(6).soft) ?? 0
        let ok = limit > UInt64(apps * 2)
        return DoctorCheck(
            name: "processes",
            ok: ok,
            value: limit == UInt64.max ? "no limit" : "\(limit)",
            message: ok ? nil : "launches will fail: raise LimitNPROC= of the service, or ulimit -u"
        )
    }

    private var user: DoctorCheck {
        DoctorCheck(
            name: "user",
            ok: Users.isRoot,
            value: Users.lookup(uid: Users.effectiveUID)?.name ?? "\(Users.effectiveUID)",
            message: Users.isRoot
                ? nil
                : "apps run as this user: they cannot have another user or group, lower nice values, or more timer "
                    + "slack while they are idle (it needs CAP_SYS_NICE)"
        )
    }

    private var journal: DoctorCheck {
        let ok = File.exists("/run/systemd/journal/stdout")
        return DoctorCheck(
            name: "journal",
            ok: ok,
            value: ok ? "/run/systemd/journal" : nil,
            message: ok ? nil : "log = \"journal\" is not possible: use log = \"file\""
        )
    }
}
