// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
package import Linux
import Processes
import TorporPolicyABI

/// Prevents the machine from running out of memory. When the kernel reports that tasks wait for memory, this class
/// takes steps of the ladder (``MemoryLadder``) until no task waits.
///
/// While there is enough memory, nothing is read and no timer runs: the kernel's PSI triggers report pressure. From
/// the first report on, memory is sampled every ``interval`` until there was no pressure for ``calm``. This time is
/// called an episode. If there are no triggers, available memory is polled. Without swap it is polled too, because
/// triggers come too late. The less memory is available, the more often it is polled.
package final class MemoryWatch: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// The rest of the supervisor, which owns this object.
    package unowned(unsafe) let host: any MemoryHost
    package let worker: MemoryWorker
    /// A prefix of `/proc` paths: empty, except in tests.
    package let root: String
    package private(set) var level = MemoryLevel.none
    /// The reason, as text, why torpord cannot act when memory is short, or acts late; nil if there is none.
    package private(set) var trouble: String?
    var ladder = MemoryLadder()
    /// The last measured memory of each app.
    var footprints: [AppID: KnownFootprint] = [:]
    /// The order in which policies want apps terminated.
    var order = PolicyOrder()
    /// The step in progress; nil if there is none.
    package var underWay: MemoryWork?
    /// For each app, a step that took too long: the app is still terminating, while a later step has begun.
    var outlasted: [AppID: MemoryWork] = [:]
    /// An app that ended, and whose freed memory is not reported yet: the available bytes before its end, and its
    /// name.
    var freed: (before: UInt64, app: String)?
    var workNumber = 0
    /// For each app that the lifecycle core refused to terminate, when that happened. Such an app is not chosen again
    /// for 2 s.
    package var refused: [AppID: Duration] = [:]
    /// Callbacks that wait for the measurement in progress.
    var afterMeasuring: [() -> Void] = []
    /// No step may begin before this time.
    var notBefore = Duration.zero
    /// The last reading of the machine's memory; nil before the first.
    package private(set) var reading: MemoryReading?
    /// Launches that wait for memory, and reserved memory.
    package var admission = MemoryAdmission()
    /// Suspended apps that will be paged out when they have been suspended long enough.
    var pageOuts = PageOutQueue()
    /// Whether swap had room, and when this was checked.
    var swapRoom: (isThere: Bool, at: Duration)?
    /// Whether torpord has already reported, in the current episode of memory pressure, that no app may be evicted.
    var isAtAnEnd = false

    private var triggers: [(trigger: PressureTrigger, source: IOSource)] = []
    private var timer: TimerSource?
    /// The memory limit around torpord and all its apps (such as the limit of a container); nil if there is none.
    private var bound: MemoryBound?
    /// The last samples: of the machine, and of the limit if there is one.
    private var samples: [MemorySample] = []
    private var isInEpisode = false
    private var quietSince: Duration?
    private var reserve = MemoryReserve()

    /// The time between samples during an episode of memory pressure.
    package static let interval = Duration.milliseconds(100)
    /// An episode of memory pressure ends after this time without pressure.
    package static let calm = Duration.seconds(2)
    /// After a pause of this length, the ladder treats further pressure as a new burst, so that short bursts do not add
    /// up to a long one.
    private static let pause = Duration.milliseconds(500)
    /// The minimum time between two samples: samples at shorter intervals give no meaningful reading.
    private static let shortestSpan = Duration.milliseconds(20)

    /// - Parameter root: a prefix of `/proc` paths.
    package init(
        _ engine: Engine,
        _ recorder: Recorder,
        _ host: any MemoryHost,
        root: String = ThisProcess.environment("TORPOR_KERNEL_FILES") ?? ""
    ) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
        worker = MemoryWorker(engine.loop)
        self.root = root
    }

    var isEnabled: Bool { host.memoryRules.enabled }
    package var rules: MemoryRules { host.memoryRules.rules }
    package var isShort: Bool { level > .none }

    // MARK: When it looks

    /// Applies the current configuration of `[supervisor.memory]`.
    package func configure() {
        triggers.forEach { $0.source.cancel() }
        triggers = []
        trouble = nil
        guard isEnabled else {
            trouble = "[supervisor.memory] enabled = false"
            timer = nil
            if level > .none { change(to: .none) }
            if isInEpisode { end() }
            return admitAll()
        }
        ladder.reserve(apps.count)
        bound = MemoryBound(around: host.cgroup, root: root)
        let first = takeSamples()
        guard !first.isEmpty else {
            trouble = "/proc/meminfo cannot be read"
            return log.warning("torpord cannot act when memory is short: /proc/meminfo cannot be read")
        }
        listen()
        // An episode of memory pressure that began under the old rules continues under the new ones.
        guard !isInEpisode else { return }
        reserve.fill(for: apps.count)
        samples = first
        timer = nil
        if let time = nextLook(first) { rearm(after: time) }
    }

    private func listen() {
        guard root.isEmpty else { return }
        do throws(Errno) {
            try listen(.some, rules.warningStall, .warning)
            try listen(.full, rules.criticalStall, .critical)
        } catch {
            triggers.forEach { $0.source.cancel() }
            triggers = []
            let why = error == .noSuchFileOrDirectory || error == .notSupported ? "psi=1 is missing" : "\(error)"
            trouble = "the kernel does not report memory pressure (\(why)): torpord polls available memory instead"
            log.info(trouble ?? "")
        }
    }

    /// Registers PSI triggers for the machine and for the memory limit. Their window is 1 s, or 2 s if the kernel
    /// refuses that, as it does for processes without privileges.
    private func listen(_ share: PressureTrigger.Share, _ stall: Duration, _ level: MemoryLevel) throws(Errno) {
        let ordinary = PressureTrigger.ordinaryWindow
        for (stall, window, isLast) in [(stall, .seconds(1), false), (stall * 2, ordinary, true)] {
            do throws(Errno) {
                try watch(PressureTrigger(on: .memory, share, stall: stall, window: window), level)
                if let trigger = try bound?.trigger(share, stall: stall, window: window) { try watch(trigger, level) }
                return
            } catch {
                let isWindow = error == .invalidArgument || error == .notPermitted || error == .permissionDenied
                guard isWindow, !isLast else { throw error }
            }
        }
    }

    private func watch(_ trigger: PressureTrigger, _ level: MemoryLevel) throws(Errno) {
        let source = try loop.watch(trigger.descriptor.raw, .priority) { [weak self] events in
            // An error means that the cgroup of the memory limit was removed. Replace all triggers, because this one
            // would report the error forever.
            if events.contains(.error) { self?.configure() } else { self?.heard(level) }
        }
        triggers.append((trigger, source))
    }

    /// Called when the kernel reports that tasks wait for memory.
    private func heard(_ level: MemoryLevel) {
        guard !isInEpisode else { return }
        // Use the trigger's threshold as the stall time of the first reading, for which there may be no earlier sample.
        // If that reading shows enough memory, no episode begins.
        look(told: level)
    }

    private func rearm(after time: Duration) {
        if timer == nil { timer = try? loop.timer { [weak self] in self?.look() } }
        timer?.arm(after: time)
    }

    /// While the kernel reports no pressure: how long until the next sample; nil for never.
    ///
    /// With little or no free swap, the kernel's reports come too late. It cannot reclaim the memory of programs, so no
    /// task waits until memory is gone, and the first sign is an OOM kill (measured: 39 ms of stalls in total, with 8
    /// of 3,000 MiB left). So sample after the time in which 1 GiB/s would use up the memory that is left above
    /// `warning_available`.
    private func nextLook(_ samples: [MemorySample]) -> Duration? {
        if triggers.isEmpty { return pollInterval(samples) }
        // If the rules set no threshold for available memory, samples are of no use: the kernel's triggers report
        // stalls.
        guard rules.warningAvailable > 0 || rules.criticalAvailable > 0 else { return nil }
        guard let memory = samples.last?.memory, memory.swapFree < memory.total / 20 else { return nil }
        let bound = UInt64(Double(memory.total) * rules.warningAvailable)
        let left = memory.available > bound ? memory.available - bound : 0
        return max(Self.interval, .microseconds(Int64(clamping: left / (1 << 10))))
    }

    /// The interval of samples if there are no triggers: the time in which 4 GiB/s would use up the memory that is left
    /// above `warning_available` and half of the free swap. At least ``interval``, at most 1 s.
    private func pollInterval(_ samples: [MemorySample]) -> Duration {
        guard let sample = samples.last else { return .seconds(1) }
        let bound = UInt64(Double(sample.memory.total) * rules.warningAvailable)
        let left = sample.memory.available > bound ? sample.memory.available - bound : 0
        let swap = sample.memory.swapFree
        return min(.seconds(1), max(Self.interval, .microseconds(Int64(clamping: (left &+ swap / 2) / (4 << 10)))))
    }

    private func begin() {
        isInEpisode = true
        quietSince = nil
        isAtAnEnd = false
        worker.staysReady = true
        reserve.open()
        // Until the policy answers, treat all apps like those that its answer does not name: such apps are not
        // terminated.
        if let policy = host.evictionPolicy { order = PolicyOrder(policy: policy, askedAt: now) }
        loop.later { [weak self] in self?.askPolicies() }
    }

    private func end() {
        isInEpisode = false
        quietSince = nil
        worker.staysReady = false
        outlasted = [:]
        ladder.reset()
        order = PolicyOrder()
        reserve.fill(for: apps.count)
        if !triggers.isEmpty { timer = nil }
    }

    // MARK: A look

    private func takeSamples() -> [MemorySample] {
        [MemorySample(at: now, root: root), bound.flatMap { MemorySample(at: now, root: root, bound: $0) }]
            .compactMap { $0 }
    }

    /// The worse of two readings: that of the machine and that of the memory limit. Nil without samples.
    private func reading(_ samples: [MemorySample], told: MemoryLevel?) -> MemoryReading? {
        var worst: MemoryReading?
        for (index, sample) in samples.enumerated() {
            let before = self.samples.count == samples.count ? self.samples[index] : nil
            var reading = sample.reading(since: before)
            if let told {
                reading.some = (told == .critical ? rules.criticalStall : rules.warningStall).inSeconds
                reading.full = told == .critical ? rules.criticalStall.inSeconds : 0
            }
            guard let other = worst, rules.level(reading) < rules.level(other) else {
                worst = reading
                continue
            }
        }
        return worst
    }

    private func look(told: MemoryLevel? = nil) {
        let now = now
        let samples = takeSamples()
        if told == nil, let before = self.samples.first, let sample = samples.first,
            sample.at - before.at < Self.shortestSpan
        {
            return rearm(after: Self.shortestSpan)
        }
        guard let reading = reading(samples, told: told) else { return rearm(after: .seconds(1)) }
        self.samples = samples
        self.reading = reading
        let level = rules.level(reading)
        if level > .none, !isInEpisode { begin() }
        if level > .none {
            quietSince = nil
        } else if quietSince == nil {
            quietSince = now
        }
        // The level rises at once, but falls only after ``calm`` without pressure.
        if level > self.level { change(to: level) }
        let quiet = quietSince.map { now - $0 } ?? .zero
        if quiet >= Self.pause { ladder.pause() }
        let isQuiet = quietSince != nil && quiet >= Self.calm
        if isQuiet, self.level > .none { change(to: .none) }
        if isQuiet, isInEpisode { end() }
        if isInEpisode {
            if level > .none { act(level, reading) }
            rearm(after: Self.interval)
        } else if let time = nextLook(samples) {
            rearm(after: time)
        }
    }

    private func change(to new: MemoryLevel) {
        let old = level
        level = new
        guard let reading else { return }
        if new == .none {
            note(.memoryEnough, text: "memory is no longer short: \(reading.text)")
        } else {
            note(
                .memoryShort,
                text: "memory is short (\(new.rawValue)): \(reading.text)",
                reason: new.rawValue
            )
        }
        host.memoryPressure(from: old, to: new)
        if new == .none { host.memoryIsEnough() }
    }

    /// The memory available now, within the limit around all apps if there is one; nil if it cannot be read.
    package func memory() -> MachineMemory? {
        MachineMemory(root: root).map { machine in bound?.memory(of: machine) ?? machine }
    }
}

extension MemoryLevel {
    /// The number that stands for the level in the policies' C interface.
    package var policyCode: UInt32 {
        switch self {
        case .none: TORPOR_PRESSURE_NONE
        case .warning: TORPOR_PRESSURE_WARNING
        case .critical: TORPOR_PRESSURE_CRITICAL
        }
    }
}
