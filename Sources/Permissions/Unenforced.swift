// SPDX-License-Identifier: Apache-2.0

/// The parts of a sandbox that a kernel does not enforce.
public enum Unenforced {
    /// One sentence for each access that the app has although no permission allows it.
    ///
    /// - Parameters:
    ///   - version: the version of Landlock, from 1; 0 if the kernel has none.
    ///   - sharesIPC: whether the app is in the IPC namespace of other processes.
    public static func sentences(
        _ sandbox: Sandbox,
        _ grants: PermissionGrants,
        version: Int,
        isRoot: Bool,
        sharesIPC: Bool = false
    ) -> [String] {
        guard sandbox.mode != nil else { return [] }
        var result: [String] = []
        func add(_ isSo: Bool, _ sentence: String) { if isSo { result.append(sentence) } }
        let isConfined = !grants.hasAllFiles
        let ipc = "it can use System V shared memory, semaphores and queues of its user (needs a supervisor of root)"
        if version < 1 {
            return LandlockPlan.isNeeded(for: grants)
                ? ["this kernel has no Landlock, so the app is not launched"]
                : ["this kernel has no Landlock: only the network is withheld"] + (sharesIPC ? [ipc] : [])
        }
        add(isRoot, "it runs as root, which can change modes and owners of all files: write user = \"…\"")
        add(isConfined && version < 3, "it can truncate files that its user may write (needs Linux 6.2)")
        if case .ports = grants.network {
            add(version < 4, "it can use all TCP ports, not only those of network (needs Linux 6.7)")
            result.append("UDP is not limited to the ports of network")
        }
        add(version < 5, "it can control devices that it is given open (needs Linux 6.10)")
        add(version < 6, "it can signal processes of its user, and reach abstract Unix sockets (needs Linux 6.12)")
        add(sharesIPC, ipc)
        add(isConfined, "it can connect to Unix sockets that its user may connect to")
        add(isConfined, "it can see that files exist, and change modes of those that its user owns")
        let hearing = sandbox.declarations.contains { $0.permission == .device(.microphone) }
        add(
            hearing && !grants.devices.contains(.microphone),
            "microphone is withheld only as far as no sound server (PipeWire, PulseAudio) serves its user"
        )
        return result
    }
}
