import Linux
import Processes
import TorporAPI

/// Looks at what the machine offers this supervisor, and says what is missing and what that costs.
struct Doctor {
    private let supervisor: Supervisor

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    func checks() -> [DoctorCheck] {
        let freezes = supervisor.cgroups.map { File.exists($0.base + "/cgroup.freeze") } ?? false
        return [
            cgroups, store, MachineChecks.freezer(freezes),
            MachineChecks.controllers(supervisor.cgroups?.controllers ?? []),
        ] + MachineChecks(apps: supervisor.apps.count).all
    }

    private var store: DoctorCheck {
        let path = supervisor.runtime.state + "/torpor.db"
        return DoctorCheck(
            name: "store",
            ok: supervisor.storeTrouble == nil,
            value: path,
            message: supervisor.storeTrouble
        )
    }

    private var cgroups: DoctorCheck {
        if let tree = supervisor.cgroups { return DoctorCheck(name: "cgroup v2", ok: true, value: tree.base) }
        return DoctorCheck(name: "cgroup v2", ok: false, message: supervisor.cgroupTrouble)
    }
}
