import Configuration
import Linux
import Processes
import TorporAPI

/// Looks at what the machine offers, and says what is missing and what that costs.
struct Doctor {
    private let supervisor: Supervisor

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    func checks() -> [DoctorCheck] {
        [cgroups, freezer, controllers, pressure, swap, descriptors, processes, user, journal]
    }

    private var cgroups: DoctorCheck {
        if let tree = supervisor.cgroups { return DoctorCheck(name: "cgroup v2", ok: true, value: tree.base) }
        return DoctorCheck(name: "cgroup v2", ok: false, message: supervisor.cgroupTrouble)
    }

    private var freezer: DoctorCheck {
        let ok = supervisor.cgroups.map { File.exists($0.base + "/cgroup.freeze") } ?? false
        return DoctorCheck(
            name: "freezer",
            ok: ok,
            value: ok ? "cgroup.freeze" : nil,
            message: ok ? nil : "suspend_with = \"freezer\" falls back to SIGSTOP, which apps' parents can see"
        )
    }

    private var controllers: DoctorCheck {
        let found = supervisor.cgroups?.controllers ?? []
        return DoctorCheck(
            name: "controllers",
            ok: found.contains("memory") && found.contains("cpu"),
            value: found.isEmpty ? nil : found.joined(separator: " "),
            message: found.contains("memory") && found.contains("cpu")
                ? nil : "memory and processor time are read from /proc, and no limits by cgroup are possible"
        )
    }

    private var pressure: DoctorCheck {
        let ok = File.exists("/proc/pressure/memory")
        return DoctorCheck(
            name: "pressure (PSI)",
            ok: ok,
            value: ok ? "/proc/pressure" : nil,
            message: ok ? nil : "the kernel does not tell of memory pressure: boot with psi=1"
        )
    }

    private var swap: DoctorCheck {
        let lines = ((try? File.readString("/proc/swaps")) ?? "").split(separator: "\n").count
        return DoctorCheck(
            name: "swap",
            ok: lines > 1,
            value: lines > 1 ? "\(lines - 1) in use" : nil,
            message: lines > 1
                ? nil : "suspended apps keep all their memory: a zram device would let them be paged out"
        )
    }

    private var descriptors: DoctorCheck {
        let limit = (try? ThisProcess.limit(7).hard) ?? 0
        let apps = Int(clamping: limit) / 6
        return DoctorCheck(
            name: "descriptors",
            ok: apps >= supervisor.apps.count,
            value: "\(limit), enough for about \(apps) apps",
            message: apps >= supervisor.apps.count ? nil : "raise LimitNOFILE= of the service, or ulimit -n"
        )
    }

    private var processes: DoctorCheck {
        let limit = (try? ThisProcess.limit(6).soft) ?? 0
        let text = limit == UInt64.max ? "no limit" : "\(limit)"
        let ok = limit > UInt64(supervisor.apps.count * 2)
        return DoctorCheck(
            name: "processes",
            ok: ok,
            value: text,
            message: ok ? nil : "launches will fail: raise LimitNPROC= of the service, or ulimit -u"
        )
    }

    private var user: DoctorCheck {
        DoctorCheck(
            name: "user",
            ok: Users.isRoot,
            value: Users.lookup(uid: Users.effectiveUID)?.name ?? "\(Users.effectiveUID)",
            message: Users.isRoot
                ? nil : "apps run as this user, and user, group and lower nice values are not possible"
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
