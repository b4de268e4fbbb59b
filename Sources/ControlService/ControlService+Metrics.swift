// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Linux
import MemoryPressure
import Processes
import Supervisor
import TorporAPI

/// Numbers for those who watch many machines.
extension ControlService {
    /// What only torpord knows: what it has counted, and what its processes and the machine's memory are.
    var metrics: [MetricFamily] { counters.families + ofApps + ofProcesses + ofMemory }

    private var ofApps: [MetricFamily] {
        func each(_ metric: Metric, _ value: (AppRuntime) -> Int) -> MetricFamily {
            MetricFamily(metric, apps.map { MetricSample([MetricLabel("app", $0.name)], Double(value($0))) })
        }
        return [
            each(.appMail) { supervisor.mailboxes.waiting(for: $0).count },
            each(.appUnhandled) { supervisor.mailboxes.unhandled.count(of: $0) },
            each(.appUnhandledDropped) { $0.unhandledDropped },
            each(.appLaunches) { Int($0.counters.launches) },
            each(.appWakes) { Int($0.counters.wakes) },
            MetricFamily(
                .appEndings,
                apps.flatMap { app in
                    app.counters.endings.map { ending in
                        let labels = [
                            MetricLabel("app", app.name), MetricLabel("reason", ending.reason.rawValue),
                        ]
                        return MetricSample(labels, Double(ending.count))
                    }
                }
            ),
        ]
    }

    private var ofProcesses: [MetricFamily] {
        let processes = [("torpord", ThisProcess.pid), ("torpor-keeper", supervisor.keeper.pid)]
            .compactMap { name, pid in (try? ProcFS.stat(pid)).map { ([MetricLabel("process", name)], pid, $0) } }
        return [
            MetricFamily(.supervisorStart, (Double(recorder.startedAt) / 1000).rounded() / 1000),
            MetricFamily(
                .supervisorProcessor,
                processes.map { labels, _, stat in
                    MetricSample(labels, Clock.duration(ticks: stat.userTicks + stat.systemTicks).inSeconds)
                }
            ),
            MetricFamily(
                .supervisorMemory,
                processes.map { labels, _, stat in
                    MetricSample(labels, Double(stat.residentPages * UInt64(Memory.pageSize)))
                }
            ),
            MetricFamily(
                .supervisorDescriptors,
                processes.compactMap { labels, pid, _ in
                    ProcFS.descriptorCount(pid).map { MetricSample(labels, Double($0)) }
                }
            ),
        ]
    }

    private var ofMemory: [MetricFamily] {
        var families = [
            MetricFamily(
                .memoryLevel,
                MetricFamily.state(
                    of: .memoryLevel,
                    [],
                    is: supervisor.memoryWatch.level.rawValue,
                    of: [MemoryLevel.none, .warning, .critical].map(\.rawValue)
                )
            )
        ]
        if let memory = supervisor.memoryWatch.memory() {
            families += [
                MetricFamily(.memoryTotal, Double(memory.total)),
                MetricFamily(.memoryAvailable, Double(memory.available)),
                MetricFamily(.swapTotal, Double(memory.swapTotal)),
                MetricFamily(.swapFree, Double(memory.swapFree)),
            ]
        }
        if let pressure = Pressure(on: .memory, root: supervisor.memoryWatch.root) {
            let totals = [("some", pressure.someTotal), ("full", pressure.fullTotal)]
            families.append(
                MetricFamily(
                    .memoryWaiting,
                    totals.compactMap { name, total in
                        total.map { MetricSample([MetricLabel("tasks", name)], Double($0) / 1_000_000) }
                    }
                )
            )
        }
        return families
    }
}
