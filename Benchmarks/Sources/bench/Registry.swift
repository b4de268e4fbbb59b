// SPDX-License-Identifier: Apache-2.0

/// All peers and measurements, in the order of the tables.
enum Registry {
    static func peers(_ bench: Bench) -> [any Peer] {
        [
            Floor(),
            Torpor(binaries: bench.binaries),
            Torpor(hasCgroups: false, binaries: bench.binaries),
            S6(),
            Runit(),
            Supervisord(),
            Systemd(bench),
        ] + (bench.before.map { [Torpor(isBefore: true, binaries: $0)] } ?? [])
    }

    static var measurements: [any Measurement] {
        [
            Scale(), Idle(), Restart(), Suspend(), Asking(), Recovery(), Logging(), Heartbeats(), Bomb(), Policies(),
            Delegates(), Wakes(), Scenes(), InnerScenes(), Transfers(), Containers(), Density(),
        ]
    }
}
