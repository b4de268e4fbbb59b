// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
package import Linux
import Processes
import TorporPolicyABI

/// Sees to it that the machine does not run out of memory: hears from the kernel when work waits for it, and climbs the
/// ladder (``MemoryLadder``) until it does not any more.
///
/// While there is enough, nothing is read and nothing is woken: the kernel's triggers tell (PSI). From the first word on
/// it looks every ``interval`` until it has been quiet for ``calm``; this is an episode. Where the kernel has no triggers,
/// or no swap, so that they tell too late, it looks at memory available now and then, the more often the less there is.
package final class MemoryWatch: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// What it needs of the other rooms. It owns this one.
    package unowned(unsafe) let host: any MemoryHost
    package let worker: MemoryWorker
    /// What stands before `/proc`: nothing, but in tests.
    package let root: String
    /// How short memory is.
    package private(set) var level = MemoryLevel.none
    /// Why nothing is done about short memory, or only late, in words.
    package private(set) var trouble: String?
    var ladder = MemoryLadder()
    /// What each app has, as far as it was measured.
    var footprints: [AppID: KnownFootprint] = [:]
    /// The places that policies have given apps.
    var order = PolicyOrder()
    /// What is being done.
    package var underWay: MemoryWork?
    /// What took longer than it was waited for, by its app.
    var outlasted: [AppID: MemoryWork] = [:]
    /// An ending that has not been told yet: the bytes that were available before, and of which app.
    var freed: (before: UInt64, app: String)?
    var workNumber = 0
    /// Apps that the core did not let go, and when: they are left alone for a while.
    package var refused: [AppID: Duration] = [:]
    /// Those who wait for what is being measured.
    var afterMeasuring: [() -> Void] = []
    /// No step before.
    var notBefore = Duration.zero
    /// The last reading.
    package private(set) var reading: MemoryReading?
    /// Launches that wait for memory.
    package var admission = MemoryAdmission()
    /// Suspended apps whose memory goes to swap after a while.
    var pageOuts = PageOutQueue()
    /// Whether there was room in swap, and when that was looked at.
    var swapRoom: (isThere: Bool, at: Duration)?
    /// It was said that nothing is left to be done.
    var isAtAnEnd = false

    private var triggers: [(trigger: PressureTrigger, source: IOSource)] = []
    private var timer: TimerSource?
    /// A limit around the supervisor and all its apps; nil: there is the whole machine.
    private var bound: MemoryBound?
    /// Of the machine, and of the bound.
    private var samples: [MemorySample] = []
    private var isInEpisode = false
    private var quietSince: Duration?
    private var reserve = MemoryReserve()

    /// How often it looks during an episode.
    package static let interval = Duration.milliseconds(100)
    /// So long without pressure, and the episode is over.
    package static let calm = Duration.seconds(2)
    /// So long without pressure, and what comes then is another burst: bursts do not add up to what lasts.
    private static let pause = Duration.milliseconds(500)
    /// Two looks that are closer say nothing.
    private static let shortestSpan = Duration.milliseconds(20)

    /// - Parameter root: what stands before `/proc`.
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

    /// Goes by what the configuration says now.
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
        // Whatever was begun under other rules goes on under these.
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

    /// A trigger for the machine, and one for the bound. Whoever may not have a window of a second takes one of two.
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
            // The bound is gone, and would tell of that for ever.
            if events.contains(.error) { self?.configure() } else { self?.heard(level) }
        }
        triggers.append((trigger, source))
    }

    /// The kernel says that work waits.
    private func heard(_ level: MemoryLevel) {
        guard !isInEpisode else { return }
        // What it has counted is the reason that it told: the look takes it for the first reading. Where it finds that
        // there is enough, that was all.
        look(told: level)
    }

    private func rearm(after time: Duration) {
        if timer == nil { timer = try? loop.timer { [weak self] in self?.look() } }
        timer?.arm(after: time)
    }

    /// When it looks although the kernel has said nothing; nil: never. Without swap nothing waits before memory is gone:
    /// what programs have cannot be taken back, and the first that is heard is that the kernel has ended one (39 ms of
    /// stall in all, with 8 of 3,000 MiB left). So it looks when what is left could have been taken at 1 GiB/s.
    private func nextLook(_ samples: [MemorySample]) -> Duration? {
        if triggers.isEmpty { return pollInterval(samples) }
        // Whoever goes by what waits alone is woken by the kernel alone.
        guard rules.warningAvailable > 0 || rules.criticalAvailable > 0 else { return nil }
        guard let memory = samples.last?.memory, memory.swapFree < memory.total / 20 else { return nil }
        let bound = UInt64(Double(memory.total) * rules.warningAvailable)
        let left = memory.available > bound ? memory.available - bound : 0
        return max(Self.interval, .microseconds(Int64(clamping: left / (1 << 10))))
    }

    /// Without triggers: soon where little is left. A machine fills 4 GiB in a second; a tenth of what is left to the
    /// bound takes at least so long.
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
        // From this moment on it may be anybody whom a policy protects.
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

    /// The reading that is worse: of the machine, or of the bound.
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
        // It rises at once, and falls when it has been quiet for a while.
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

    /// The memory that there is now: the machine's, or what a bound around all apps leaves of it; nil where it cannot be
    /// read.
    package func memory() -> MachineMemory? {
        MachineMemory(root: root).map { machine in bound?.memory(of: machine) ?? machine }
    }
}

extension MemoryLevel {
    /// As policies have it.
    package var policyCode: UInt32 {
        switch self {
        case .none: TORPOR_PRESSURE_NONE
        case .warning: TORPOR_PRESSURE_WARNING
        case .critical: TORPOR_PRESSURE_CRITICAL
        }
    }
}
