// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import TorporAPI

/// Removes caches of stopped apps while the filesystem of the state directory has less than `min_free` free. Begins
/// with the app that has not run for the longest time, and in that app's caches with the least recently used files.
///
/// The free space is checked every minute, because the kernel does not report that a filesystem is nearly full, and
/// soon after an app has ended, because that app's caches may now be removed. If too little space is free but no cache
/// can be removed, the next check follows after ten minutes. Without an app that has data folders, no check runs.
final class CacheEviction {
    private unowned(unsafe) let room: DataFolders
    private var timer: TimerSource?
    private var isLooking = false
    private var isSaid = false

    private static let interval = Duration.seconds(60)
    /// The time until the next check if too little space is free but no cache could be removed.
    private static let longInterval = Duration.seconds(600)
    /// The time from the end of an app to the next check. Several apps may end together, and then one check is enough.
    private static let soon = Duration.seconds(2)

    init(_ room: DataFolders) { self.room = room }

    private var rule: FreeSpaceRule { room.supervisor.configuration.supervisor.minFree }

    /// Starts the checks.
    func begin() {
        guard timer == nil else { return }
        timer = try? room.loop.timer { [weak self] in self?.look() }
        timer?.arm(after: Self.soon)
    }

    /// Called when an app has ended, so that its caches may be removed now: checks again soon.
    func lookSoon() { if !isLooking { timer?.arm(after: Self.soon) } }

    private struct Candidate: Sendable {
        let name: String
        /// When the app last ended, in microseconds since 1970; nil if that is not known.
        let lastRun: Int64?
    }

    private enum Look: Sendable {
        case enough
        case missing(bytes: UInt64, free: UInt64, total: UInt64, stored: [String])
    }

    private func look() {
        guard !room.isEnding, rule != .none, !isLooking else { return again(Self.interval) }
        isLooking = true
        let (root, rule) = (room.root, rule)
        room.worker.ask { () -> Look in
            guard let space = try? FilesystemSpace(of: root) else { return .enough }
            let wanted = rule.bytes(of: space.total)
            guard space.free < wanted else { return .enough }
            return .missing(
                bytes: wanted - space.free,
                free: space.free,
                total: space.total,
                stored: DataPlace.apps(in: root)
            )
        } _: { [weak self] look in
            guard let self else { return }
            switch look {
            case .enough:
                self.isSaid = false
                self.again(Self.interval)
            case .missing(let bytes, let free, let total, let stored):
                self.evict(bytes, free, total, self.candidates(stored), freed: 0)
            }
        }
    }

    private func again(_ time: Duration) {
        isLooking = false
        timer?.arm(after: time)
    }

    /// Stopped apps whose caches may be removed, in the order of removal. Apps that have left the configuration come
    /// first.
    private func candidates(_ stored: [String]) -> [Candidate] {
        let all = stored.compactMap { name -> Candidate? in
            guard let app = app(name) else { return Candidate(name: name, lastRun: nil) }
            return mayLose(app) ? Candidate(name: name, lastRun: app.lastExit?.at) : nil
        }
        return all.sorted { ($0.lastRun ?? .min, $0.name) < ($1.lastRun ?? .min, $1.name) }
    }

    private func app(_ name: String) -> AppRuntime? { room.coordinator.id(of: name).map { room.apps[$0] } }

    private func mayLose(_ app: AppRuntime) -> Bool { !room.machine(app).isAlive && !app.isPreparing }

    private func evict(_ missing: UInt64, _ free: UInt64, _ total: UInt64, _ candidates: [Candidate], freed: UInt64) {
        guard missing > 0, let next = candidates.first else {
            if missing > 0, !isSaid {
                isSaid = true
                room.log.warning(
                    "the filesystem of \(room.root) has \(Bytes.text(free &+ freed)) free, less than min_free, "
                        + "and no stopped app has caches to remove"
                )
            }
            return again(missing > 0 && freed == 0 ? Self.longInterval : Self.interval)
        }
        let rest = Array(candidates.dropFirst())
        // Skip an app that was launched since the candidates were listed.
        if let app = app(next.name), !mayLose(app) { return evict(missing, free, total, rest, freed: freed) }
        let (place, gate, work) = (DataPlace(root: room.root, app: next.name), room.gate(of: next.name), TreeWork())
        gate.evict(work)
        room.worker.ask {
            gate.alone { place.evict(bytes: missing, work) }
        } _: { [weak self] result in
            guard let self else { return }
            if result.files > 0 {
                let part = total > 0 ? Double(free &+ freed) * 100 / Double(total) : 0
                self.room.note(
                    self.app(next.name),
                    .cachesRemoved,
                    text: (self.app(next.name) == nil ? "\(next.name), which is no longer in the configuration, " : "")
                        + "had \(Readable.count(result.files, "file")) (\(Bytes.text(result.bytes))) of its caches "
                        + "removed: the filesystem had \(Bytes.text(free &+ freed)) free (\(Bytes.oneDigit(part)) %)"
                )
            }
            let left = missing > result.bytes ? missing - result.bytes : 0
            self.evict(left, free, total, rest, freed: freed &+ result.bytes)
        }
    }
}

package enum Bytes {
    /// A size in words, such as `12 B` or `1.5 MiB`.
    package static func text(_ bytes: UInt64) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var value = Double(bytes)
        var unit = 0
        while value >= 1024, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        return unit == 0 ? "\(bytes) B" : "\(oneDigit(value)) \(units[unit])"
    }

    static func oneDigit(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
