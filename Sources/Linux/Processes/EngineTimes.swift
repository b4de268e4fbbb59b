// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// How long processes have used the engines of graphics cards, as the kernel reports in `/proc/PID/fdinfo`
/// (Documentation/gpu/drm-usage-stats.rst).
///
/// The drivers i915, amdgpu, msm, panfrost and others report these times in nanoseconds. The driver xe reports them in
/// another unit, which is ignored. NVIDIA's own driver reports nothing.
public struct EngineTimes: Hashable, Sendable {
    /// An engine of a graphics card, such as `render`.
    public struct Engine: Hashable, Sendable {
        /// The card's bus address, such as `0000:00:02.0`; the name of the driver if the kernel reports no bus address.
        public var card: String
        /// The engine's name, such as `render`.
        public var name: String

        /// Creates an engine from its parts.
        public init(card: String, name: String) { (self.card, self.name) = (card, name) }
    }

    /// The use of an engine through one open file of the card. Several descriptors and processes may share the open
    /// file.
    public struct Use: Hashable, Sendable {
        /// The engine that is used.
        public var engine: Engine
        /// The kernel's number of the open file (drm-client-id).
        public var client: UInt64
    }

    /// For each use, how long the engine has worked since the card's file was opened, in nanoseconds.
    public var nanoseconds: [Use: UInt64] = [:]

    /// Creates times without any use of an engine.
    public init() {}

    /// The maximum number of uses that are stored, because a process can open a card's file any number of times.
    public static let most = 4096
    /// The maximum number of engines that are read from one descriptor's fdinfo. Cards have about ten.
    private static let mostEngines = 64
    /// The maximum number of a process's descriptors that are inspected.
    private static let mostDescriptors = 4096

    /// Adds the times in the text of a descriptor's fdinfo.
    ///
    /// - Returns: whether the descriptor belongs to a graphics card whose driver reports times of engines.
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
        // Without a client number, it is unknown which descriptors share an open file, so the same time could be
        // counted twice.
        guard let client, !engines.isEmpty else { return false }
        for (name, time) in engines {
            let use = Use(engine: Engine(card: card ?? driver, name: name), client: client)
            guard nanoseconds[use] != nil || nanoseconds.count < Self.most else { continue }
            nanoseconds[use] = max(nanoseconds[use] ?? 0, time)
        }
        return true
    }

    /// Reads the times of all engines that these processes use. May block until a driver has answered.
    public static func read(_ processes: [Int32], root: String = "/proc") -> EngineTimes {
        var times = EngineTimes()
        for process in processes {
            let folder = "\(root)/\(process)"
            for name in ((try? File.list(folder + "/fd")) ?? []).prefix(mostDescriptors) {
                // Skip descriptors of files outside /dev/dri, because reading their fdinfo takes kernel locks that have
                // nothing to do with graphics cards.
                guard let target = try? File.readLink("\(folder)/fd/\(name)"), target.hasPrefix("/dev/dri/"),
                    let text = try? File.readString("\(folder)/fdinfo/\(name)", limit: 64 << 10)
                else { continue }
                times.add(text)
            }
        }
        return times
    }

    /// The engine that has worked most since an earlier reading, and its share of the elapsed time. The share is 1 for
    /// one fully used engine, and can be more if a card has several engines of that name. Nil if no engine has worked.
    public func busiest(since earlier: EngineTimes, over elapsed: Duration) -> (engine: Engine, share: Double)? {
        guard elapsed > .zero else { return nil }
        var used: [Engine: UInt64] = [:]
        for (use, time) in nanoseconds {
            // If the card's file was opened after the earlier reading, count all of its time.
            let before = earlier.nanoseconds[use] ?? 0
            guard time > before else { continue }
            used[use.engine, default: 0] += time - before
        }
        let busiest = used.max { ($0.value, $0.key.name, $0.key.card) < ($1.value, $1.key.name, $1.key.card) }
        return busiest.map { ($0.key, Double($0.value) / (elapsed.inSeconds * 1_000_000_000)) }
    }
}
