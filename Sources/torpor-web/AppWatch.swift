// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink
import Web

/// A thread that lists the apps: after events, and every two seconds while the dashboard is in use. It also samples
/// memory. It sleeps once the dashboard has not been used for ten minutes.
enum AppWatch {
    private static let interval = Duration.seconds(2)
    /// The interval between lists while a verb is in progress.
    private static let short = Duration.milliseconds(150)
    /// The shortest interval between lists, even if many events arrive.
    private static let shortest = Duration.milliseconds(80)
    private static let heartbeat = Duration.seconds(10)

    /// A prefix for paths below `/proc`, from the same variable as in torpord; empty except in tests.
    private static let root = ThisProcess.environment("TORPOR_KERNEL_FILES") ?? ""

    /// Starts the thread. Throws if no thread can be started.
    static func start(socket: String, hub: Hub) throws(Errno) {
        try WorkerThread.start(named: "apps") {
            let link = Link(socket: socket)
            var listedAt = Duration.zero
            var sampledAt = Duration.zero
            var beatAt = Clock.monotonic()
            while true {
                let isTime: Bool? = hub.state.wait(until: .zero) { state, deadline in
                    let now = Clock.monotonic()
                    let isWatched = !state.pages.isEmpty || now - state.lastLook < Hub.interest
                    let next: Duration? =
                        state.underWay > 0
                        ? listedAt + short
                        : state.isStale && isWatched
                            ? listedAt + shortest : isWatched ? listedAt + interval : nil
                    if let next, next <= now {
                        state.isStale = false
                        return true
                    }
                    if next == nil {
                        state.samples.pause("no page was open for \(Hub.interest.components.seconds / 60) minutes")
                    }
                    deadline = next
                    return nil
                }
                let now = Clock.monotonic()
                guard isTime != nil else { continue }
                listedAt = now
                let apps = (try? link.call(.list, within: .seconds(5)))?["apps"]?.arrayValue
                if let apps { hub.take(apps: apps) }
                if now - sampledAt >= interval - .milliseconds(100) {
                    sampledAt = now
                    if let sample = sample(apps ?? []) { hub.take(sample) }
                }
                if now - beatAt >= heartbeat {
                    beatAt = now
                    hub.state.withLock { $0.tell(ServerSentEvent.heartbeat) }
                }
            }
        }
    }

    /// Samples the machine's memory, and each app's share of it.
    private static func sample(_ apps: [JSON]) -> Sample? {
        guard let memory = MachineMemory(root: root) else { return nil }
        let pressure = Pressure(on: .memory, root: root)
        return Sample(
            at: Clock.realtimeMicroseconds(),
            total: memory.total,
            available: memory.available,
            swapUsed: memory.swapTotal - min(memory.swapTotal, memory.swapFree),
            some: pressure.map { Double($0.some) / 100 },
            full: pressure?.full.map { Double($0) / 100 },
            apps: apps.compactMap { app in
                guard let name = app["name"]?.stringValue, let bytes = app["memory_bytes"]?.intValue, bytes > 0 else {
                    return nil
                }
                return (name, bytes)
            }
        )
    }
}
