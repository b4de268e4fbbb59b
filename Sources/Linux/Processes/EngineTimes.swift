// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// What processes have used of the engines of graphics cards, as the kernel reports it in `/proc/PID/fdinfo`
/// (Documentation/gpu/drm-usage-stats.rst).
///
/// The drivers i915, amdgpu, msm, panfrost and others report it; the driver xe counts other units, and NVIDIA's own driver
/// reports nothing.
public struct EngineTimes: Hashable, Sendable {
    /// An engine of a card, such as `render`.
    public struct Engine: Hashable, Sendable {
        /// The card, as its bus names it; the driver where it has no such name.
        public var card: String
        /// The engine's name.
        public var name: String

        /// Creates one of its parts.
        public init(card: String, name: String) { (self.card, self.name) = (card, name) }
    }

    /// One use of an engine: an open file of a card, which several descriptors and processes may share.
    public struct Use: Hashable, Sendable {
        /// The engine.
        public var engine: Engine
        /// The kernel's number of the open file.
        public var client: UInt64
    }

    /// The time of each use since it began, in nanoseconds.
    public var nanoseconds: [Use: UInt64] = [:]

    /// No use of any engine.
    public init() {}

    /// The most uses that are kept: a process can open a card very often.
    public static let most = 4096
    /// The most engines that are read of one descriptor. Cards have about ten.
    private static let mostEngines = 64
    /// The most descriptors that are looked at in a process.
    private static let mostDescriptors = 4096

    /// Adds what the text of a descriptor's fdinfo says.
    ///
    /// - Returns: whether it is one of a card that reports engines.
    @discardableResult
    public mutating func add(_ text: String) -> Bool {
        var (card, driver, client) = (nil as String?, "", nil as UInt64?)
        var engines: [(name: String, time: UInt64)] = []
        for line in text.split(separator: "\n") {
            guard line.hasPrefix("drm-"), let colon = line.firstIndex(of: ":") else { continue }
            let key = line[..<colon]
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            switch key {
            case "drm-driver": driver = String(value)
            case "drm-pdev": card = String(value)
            case "drm-client-id": client = UInt64(value)
            default:
                let prefix = "drm-engine-"
                guard key.hasPrefix(prefix), !key.hasPrefix(prefix + "capacity-"), engines.count < Self.mostEngines,
                    value.hasSuffix(" ns"), let time = UInt64(value.dropLast(3))
                else { continue }
                engines.append((String(key.dropFirst(prefix.count)), time))
            }
        }
        // Without the number it cannot be told which descriptors are one use.
        guard let client, !engines.isEmpty else { return false }
        for (name, time) in engines {
            let use = Use(engine: Engine(card: card ?? driver, name: name), client: client)
            guard nanoseconds[use] != nil || nanoseconds.count < Self.most else { continue }
            nanoseconds[use] = max(nanoseconds[use] ?? 0, time)
        }
        return true
    }

    /// Reads what these processes have used. May wait for a driver.
    public static func read(_ processes: [Int32], root: String = "/proc") -> EngineTimes {
        var times = EngineTimes()
        for process in processes {
            let folder = "\(root)/\(process)"
            for name in ((try? File.list(folder + "/fd")) ?? []).prefix(mostDescriptors) {
                // Reading fdinfo of every descriptor would take the locks of files that have nothing to do with a card.
                guard let target = try? File.readLink("\(folder)/fd/\(name)"), target.hasPrefix("/dev/dri/"),
                    let text = try? File.readString("\(folder)/fdinfo/\(name)", limit: 64 << 10)
                else { continue }
                times.add(text)
            }
        }
        return times
    }

    /// The engine that was used most since an earlier reading, and the part of the time, from 0 to 1 or more; nil if none was
    /// used.
    public func busiest(since earlier: EngineTimes, over elapsed: Duration) -> (engine: Engine, share: Double)? {
        guard elapsed > .zero else { return nil }
        var used: [Engine: UInt64] = [:]
        for (use, time) in nanoseconds {
            // A use that has begun in between has used all its time in between.
            let before = earlier.nanoseconds[use] ?? 0
            guard time > before else { continue }
            used[use.engine, default: 0] += time - before
        }
        let busiest = used.max { ($0.value, $0.key.name, $0.key.card) < ($1.value, $1.key.name, $1.key.card) }
        return busiest.map { ($0.key, Double($0.value) / (elapsed.inSeconds * 1_000_000_000)) }
    }
}
