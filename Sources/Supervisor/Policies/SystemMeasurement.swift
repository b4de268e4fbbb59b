// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import Processes
import TorporPolicyABI

/// A measurement of the machine.
struct SystemMeasurement {
    /// The time of the measurement, on CLOCK_MONOTONIC.
    let measuredAt: Duration
    /// The machine's memory; nil if it cannot be read. The same holds for all properties down to `load`.
    let memory: MachineMemory?
    let memoryPressure: Pressure?
    let processorPressure: Pressure?
    let diskPressure: Pressure?
    let load: LoadAverage?
    /// The power state. It may be up to 30 s older than the other values, because the firmware of some laptops takes
    /// milliseconds to report it.
    let power: Power
    private let powerAt: Duration

    private static let powerLook = Duration.seconds(30)

    /// Measures the machine now. `earlier`: the last measurement. `root`: a prefix for the paths of /proc and /sys, for
    /// tests.
    init(after earlier: SystemMeasurement? = nil, root: String = "") {
        let now = Clock.monotonic()
        measuredAt = now
        memory = MachineMemory(root: root)
        memoryPressure = Pressure(on: .memory, root: root)
        processorPressure = Pressure(on: .cpu, root: root)
        diskPressure = Pressure(on: .io, root: root)
        load = LoadAverage(root: root)
        if let earlier, now - earlier.powerAt < Self.powerLook {
            (power, powerAt) = (earlier.power, earlier.powerAt)
        } else {
            (power, powerAt) = (Power(root: root), now)
        }
    }

    /// Writes the measurement of the machine to the view that policies read. Leaves the rest of `view` unchanged.
    func fill(_ view: inout torpor_policy_system) {
        view.measured_at = measuredAt.microseconds
        view.memory_total = memory?.total ?? 0
        view.memory_available = memory?.available ?? 0
        view.swap_total = memory?.swapTotal ?? 0
        view.swap_free = memory?.swapFree ?? 0
        view.memory_some = memoryPressure?.some ?? .max
        view.memory_full = memoryPressure?.full ?? .max
        view.cpu_some = processorPressure?.some ?? .max
        view.io_some = diskPressure?.some ?? .max
        view.io_full = diskPressure?.full ?? .max
        view.load_1 = load?.minute ?? 0
        view.load_5 = load?.fiveMinutes ?? 0
        view.load_15 = load?.quarterHour ?? 0
        view.power =
            switch power.source {
            case .unknown: TORPOR_POWER_UNKNOWN
            case .mains: TORPOR_POWER_MAINS
            case .battery: TORPOR_POWER_BATTERY
            }
        view.battery = power.percent ?? .max
    }
}

extension AppMeasurement {
    /// Writes the measurement of the app to the view that policies read. Leaves the rest of `view` unchanged.
    func fill(_ view: inout torpor_policy_app) {
        view.measured_at = measuredAt.microseconds
        view.memory = usage.memoryBytes
        view.processes = UInt32(clamping: usage.processes)
        view.cpu_time = UInt64(clamping: processorTime.microseconds)
        view.cpu_permille = processorPermille ?? .max
        view.connections = connections.map { UInt32(clamping: $0) } ?? .max
        view.last_traffic = lastTraffic?.microseconds ?? .min
    }

    /// Marks the measurements in an app's view as unknown: the app has no processes, or has not been measured yet.
    static func clear(_ view: inout torpor_policy_app) {
        view.measured_at = .min
        view.memory = 0
        view.processes = 0
        view.cpu_time = 0
        view.cpu_permille = .max
        view.connections = .max
        view.last_traffic = .min
    }
}
