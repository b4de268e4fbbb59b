// SPDX-License-Identifier: Apache-2.0

import Linux

/// Apps that podman runs in a container: their main process is conmon, which outlives podman and exits as the container
/// does. Signals for the app are for the container's first process. It alone gets them, as from `podman kill`: conmon would
/// pass on some of them and die of others, and the processes inside belong to the first one.
extension ProcessTree {
    /// The process that signals for the app's main process are sent to.
    public var addressee: Identity { insideContainer.first ?? main }

    /// What is not stopped with the app: conmon, which does nothing while the container lives, and must notice when it
    /// ends. Otherwise a container that another program kills while it is suspended would stay so for ever.
    var spared: Set<Identity> { isConmon ? [main] : [] }

    private var isConmon: Bool {
        guard let stat = try? ProcFS.stat(main.pid) else { return false }
        return stat.startTime == main.startTime && stat.comm == "conmon"
    }

    /// The first processes of the containers below conmon, where that is the main process; none otherwise.
    var insideContainer: [Identity] {
        guard isConmon else { return [] }
        let children = ((try? ProcFS.children(main.pid)) ?? []).compactMap { try? ProcFS.stat($0) }
        // With --pid=host it has no namespace of its own. What creates and cleans up the container is not in it.
        let tools: Set<String> = ["podman", "crun", "runc"]
        let inside = children.filter { Self.isInit($0.pid) }
        return (inside.isEmpty ? children.filter { !tools.contains($0.comm) } : inside).map(Identity.init)
    }

    /// Whether a process is the first one of a pid namespace below this process's.
    private static func isInit(_ pid: Int32) -> Bool {
        guard let numbers = try? ProcFS.statusField(pid, "NSpid") else { return false }
        let all = numbers.split(whereSeparator: { $0 == "\t" || $0 == " " })
        return all.count > 1 && all.last == "1"
    }
}
