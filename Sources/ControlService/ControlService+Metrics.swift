// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import MemoryPressure
import Permissions
import Processes
import Supervisor
import TorporAPI

/// Metrics for monitoring systems.
extension ControlService {
    /// The metrics of torpord's counters, its apps, its processes and the machine's memory.
    var metrics: [MetricFamily] { counters.families + ofApps + ofProcesses + ofMemory }

    private var ofApps: [MetricFamily] {
        func each(_ metric: Metric, _ value: (AppRuntime) -> Int) -> MetricFamily {
            MetricFamily(metric, apps.map { MetricSample([MetricLabel("app", $0.name)], Double(value($0))) })
        }
        func several(_ metric: Metric, _ label: String, _ values: (AppRuntime) -> [(String, Int)]) -> MetricFamily {
            MetricFamily(
                metric,
                apps.flatMap { app in
                    values(app).map { name, value in
                        MetricSample([MetricLabel("app", app.name), MetricLabel(label, name)], Double(value))
                    }
                }
            )
        }
        return [
            each(.appMail) { supervisor.mailboxes.waiting(for: $0).count },
            each(.appUnhandled) { supervisor.mailboxes.unhandled.count(of: $0) },
            each(.appUnhandledDropped) { $0.unhandledDropped },
            several(.appTransfers, "state") { supervisor.transfers.states(of: $0) },
            several(.appTransfersEnded, "result") { app in
                TransferCounters.Result.allCases.map { ($0.rawValue, app.transferCounters.ended[$0] ?? 0) }
            },
            several(.appTransferred, "direction") { app in
                app.transferCounters.bytes.map { ($0.key, Int(clamping: $0.value)) }.sorted { $0.0 < $1.0 }
            },
            several(.appAlerts, "state") { supervisor.alerts.states(of: $0) },
            each(.appDenials) { $0.denials?.ledger.total ?? 0 },
            each(.appAlertsShown) { $0.alertsShown },
            each(.appBadge) { Int(supervisor.alerts.badge(of: $0)) },
            ofScenes,
            ofOwners,
            each(.appAsleep) { app in
                app.run.tree == nil ? 0 : Int(app.times.asleep(until: loop.now).components.seconds)
            },
            each(.appUnhealthy) { $0.run.health?.problem == nil ? 0 : 1 },
            each(.appLaunches) { Int($0.counters.launches) },
            each(.appWakes) { Int($0.counters.wakes) },
            several(.appEndings, "reason") { app in
                app.counters.endings.map { ($0.reason.rawValue, Int(clamping: $0.count)) }
            },
        ]
    }

    private var ofOwners: MetricFamily {
        let owned = apps.all.filter { machine($0).rules.owner == .external }
        return MetricFamily(
            .appOwned,
            owned.map { MetricSample([MetricLabel("app", $0.name)], machine($0).mayRun ? 1 : 0) }
        )
    }

    private var ofScenes: MetricFamily {
        let scenes = Dictionary(grouping: supervisor.scenes.scenes(of: nil)) { $0.specification.template }
        let states = [AppState.inactive, .active, .background, .suspended]
        let samples = supervisor.scenes.templates.flatMap { template in
            let found = (scenes[template.name] ?? []).map { coordinator.machine($0.id) }.filter(\.isAlive).map(\.state)
            let away = (scenes[template.name]?.count ?? 0) - found.count
            let counts =
                states.map { state in (state.rawValue, found.count { $0 == state }) } + [(SceneInfo.unattached, away)]
            return counts.map { state, count in
                MetricSample([MetricLabel("template", template.name), MetricLabel("state", state)], Double(count))
            }
        }
        let inside = supervisor.innerScenes.owners.flatMap { app in
            let found = supervisor.innerScenes.sessions(of: app).map { supervisor.innerScenes.stateText(of: $0, app) }
            return (states.map(\.rawValue) + [SceneInfo.unattached]).map { state in
                MetricSample(
                    [MetricLabel("template", app.name), MetricLabel("state", state)],
                    Double(found.count { $0 == state })
                )
            }
        }
        return MetricFamily(.scenes, samples + inside)
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
