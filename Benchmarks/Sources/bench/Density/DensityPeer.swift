// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Peers that run many apps in little memory: Torpor, and systemd alone or with a helper that kills processes under
/// memory pressure. All run in the same container with the same apps.
struct DensityPeer: Peer {
    enum Kind {
        /// systemd runs all apps all the time, with an optional helper beside it.
        case systemd(helper: Helper?)
        /// Torpor suspends idle apps; whether it may also evict them.
        case torpor(evicts: Bool)
    }
    struct Helper {
        /// The helper's unit in the container.
        let unit: String
        /// A drop-in that configures it for so much memory (MiB).
        let dropIn: (_ memory: Int) -> String
        /// A cgroup v2 controller that it requires.
        var controller: String?
    }

    let name: String
    let kind: Kind
    let conditions: String
    let tree: String
    let script: String
    let title: String

    var missing: String? {
        if geteuid() != 0 { return "it needs root: a balloon, a swap and a container" }
        if access("/sys/class/zram-control/hot_add", R_OK) != 0 { return "there is no zram here: modprobe zram" }
        if access("/usr/bin/systemd-nspawn", X_OK) != 0 {
            return "systemd-nspawn is missing: apt-get install systemd-container"
        }
        if access(tree + "/etc/torpor-tree", R_OK) != 0 {
            return "its tree is not there: \(script) make density \(tree)"
        }
        if case .systemd(let helper?) = kind, let controller = helper.controller {
            let mount = Torpor.cgroupMount ?? ""
            let there = (Processes.read(mount + "/cgroup.controllers") ?? "").split(whereSeparator: \.isWhitespace)
            if !there.contains(Substring(controller)) {
                return
                    "it needs the \(controller) controller of cgroup v2, which this machine's kernel has not given to it"
            }
        }
        return nil
    }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { try session(bench, load.count) }

    func session(_ bench: Bench, _ apps: Int) throws -> DensitySession {
        let plan = DensityPlan(bench)
        let session: DensitySession
        switch kind {
        case .systemd(let helper): session = try DensitySystemd(bench, self, apps, plan, helper)
        case .torpor(let evicts): session = try DensityTorpor(bench, self, apps, plan, evicts: evicts)
        }
        do {
            try session.boot()
        } catch {
            session.end()
            throw error
        }
        return session
    }

    static func all(_ bench: Bench) -> [DensityPeer] {
        let tree = bench.root + "/.build/bench/density-root"
        let script = bench.root + "/scripts/systemd-container"
        func peer(_ name: String, _ title: String, _ kind: Kind, _ conditions: String) -> DensityPeer {
            DensityPeer(name: name, kind: kind, conditions: conditions, tree: tree, script: script, title: title)
        }
        let running = "all apps always run, Restart=always"
        return [
            peer(
                "torpor",
                "Torpor, eviction off",
                .torpor(evicts: false),
                "evict = \"never\": apps that are not asked are stopped and paged out, and nothing else"
            ),
            peer(
                "torpor-evict",
                "Torpor",
                .torpor(evicts: true),
                "evict = \"kill\": beyond that, apps that nobody has asked for longest are ended and launched again when "
                    + "they are asked"
            ),
            peer("systemd", "systemd", .systemd(helper: nil), running + "; the kernel's OOM killer alone"),
            peer(
                "earlyoom",
                "systemd and earlyoom",
                .systemd(
                    helper: Helper(
                        unit: "earlyoom",
                        dropIn: { memory in
                            """
                            [Service]
                            Environment="EARLYOOM_ARGS=-r 3600 -M \(memory * 1024 / 10),\(memory * 1024 / 20)"
                            """
                        }
                    )
                ),
                running + "; earlyoom by its defaults, its 10 and 5 % being those of the memory that there is"
            ),
            peer(
                "nohang",
                "systemd and nohang",
                .systemd(
                    helper: Helper(
                        unit: "nohang",
                        dropIn: { memory in
                            // The defaults are 5 and 2 %. The file has no drop-ins, so edit it.
                            """
                            [Service]
                            ExecStartPre=/bin/sed -i -e 's/^soft_threshold_min_mem *=.*/soft_threshold_min_mem = \
                            \(memory / 20) M/' -e 's/^hard_threshold_min_mem *=.*/hard_threshold_min_mem = \
                            \(memory / 50) M/' /etc/nohang/nohang.conf
                            ReadWritePaths=/etc/nohang
                            """
                        }
                    )
                ),
                running + "; nohang by its defaults, its 5 and 2 % being those of the memory that there is"
            ),
            peer(
                "oomd",
                "systemd and systemd-oomd",
                .systemd(helper: Helper(unit: "systemd-oomd", dropIn: { _ in "[Service]" }, controller: "memory")),
                running
                    + "; systemd-oomd with ManagedOOMMemoryPressure=kill and ManagedOOMSwap=kill for the apps' slice"
            ),
        ]
    }
}
