// SPDX-License-Identifier: Apache-2.0

import CLinux
import WireText

/// Control groups, version 2, by absolute path.
public enum Cgroup {
    /// Where the v2 hierarchy is mounted, whatever else is; nil when it is not.
    public static func mountPoint(mountInfo: String = "/proc/self/mountinfo") -> String? {
        guard let text = try? File.readString(mountInfo, limit: 1 << 24) else { return nil }
        for line in text.split(separator: "\n") {
            // 31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw
            let fields = line.split(separator: " ")
            guard let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count, fields.count > 4 else { continue }
            if fields[dash + 1] == "cgroup2" { return unescaped(fields[4]) }
        }
        return nil
    }

    /// Where the v2 hierarchy is mounted, looked up once.
    public static let mount = mountPoint()

    /// Makes one; false when there was one already.
    @discardableResult
    public static func create(_ path: String) throws(Errno) -> Bool {
        do throws(Errno) {
            try File.makeDirectory(path)
            return true
        } catch {
            if error != .fileExists { throw error }
            return false
        }
    }

    /// Removes one without processes and children; gone already is no error. EBUSY while it has some.
    public static func remove(_ path: String) throws(Errno) {
        do throws(Errno) {
            try File.removeDirectory(path)
        } catch {
            if error != .noSuchFileOrDirectory { throw error }
        }
    }

    /// Removes one and those below it, none of which may have processes.
    public static func removeTree(_ path: String) throws(Errno) {
        do throws(Errno) {
            return try remove(path)
        } catch {
            guard error == .resourceBusy else { throw error }
        }
        for child in children(path) { try removeTree(child) }
        try remove(path)
    }

    /// The cgroups directly below. Most have none at all, which the link count says without a look at each file.
    public static func children(_ path: String) -> [String] {
        guard let links = try? File.status(path).links, links != 2 else { return [] }
        return ((try? File.list(path)) ?? []).map { path + "/" + $0 }.filter {
            (try? File.status($0, followLinks: false).kind) == .directory
        }
    }

    /// Its processes, and those of the cgroups below it. Zombies are not listed.
    public static func procs(_ path: String) throws(Errno) -> [Int32] {
        var result: [Int32] = []
        var number: Int32 = 0
        for byte in try File.read(path + "/cgroup.procs", limit: 1 << 24) {
            if byte == UInt8(ascii: "\n") {
                result.append(number)
                number = 0
            } else {
                number = number &* 10 &+ Int32(byte &- UInt8(ascii: "0"))
            }
        }
        for child in children(path) { result += (try? procs(child)) ?? [] }
        return result
    }

    /// Moves a process into it.
    public static func add(_ path: String, pid: Int32) throws(Errno) {
        try File.writeControl(path + "/cgroup.procs", "\(pid)\n")
    }

    /// SIGKILL to all in it and below, at once (Linux 5.14).
    public static func kill(_ path: String) throws(Errno) { try File.writeControl(path + "/cgroup.kill", "1\n") }

    /// Asks for freezing or thawing; `events` says when it is done.
    public static func freeze(_ path: String, _ on: Bool) throws(Errno) {
        try File.writeControl(path + "/cgroup.freeze", on ? "1\n" : "0\n")
    }

    /// Asks for thawing it and all below it.
    public static func thawTree(_ path: String) {
        try? freeze(path, false)
        for child in children(path) { thawTree(child) }
    }

    /// Whether there are processes in it or below, and whether all of them are frozen.
    public static func events(_ path: String) throws(Errno) -> (populated: Bool, frozen: Bool) {
        let lines = try File.read(path + "/cgroup.events").split(separator: UInt8(ascii: "\n"))
        return (lines.contains { $0.elementsEqual(populated) }, lines.contains { $0.elementsEqual(frozen) })
    }

    /// Whether there are processes in it or below, and each of them is frozen. Of a cgroup with processes of its own and
    /// others below it the kernel says "frozen" as soon as its own are: so each below is asked as well.
    public static func isFrozen(_ path: String) -> Bool {
        guard let events = try? events(path), events.populated, events.frozen else { return false }
        return children(path).allSatisfy { (try? Self.events($0).populated) != true || isFrozen($0) }
    }

    private static let populated = Array("populated 1".utf8)
    private static let frozen = Array("frozen 1".utf8)

    /// Whether systemd has left what is below a cgroup to whoever runs in it (Delegate=yes), as it marks it.
    public static func isDelegated(_ path: String) -> Bool {
        ["trusted.delegate", "user.delegate"].contains { name in
            var value: UInt8 = 0
            return tlx_attribute(path, name, &value, 1) == 1 && value == UInt8(ascii: "1")
        }
    }

    /// Whether a cgroup is asked to be frozen, done or not.
    public static func isFreezeWanted(_ path: String) -> Bool {
        (try? File.read(path + "/cgroup.freeze").first) == UInt8(ascii: "1")
    }

    /// For want of what memory the kernel has ended processes of a cgroup.
    public enum MemoryShortage: Hashable, Sendable {
        /// The cgroup had reached its own `memory.max`.
        case ownLimit
        /// The machine, or a cgroup above, had none left.
        case machine
    }

    /// Why the kernel's OOM killer has ended processes in it or below; nil when it has ended none, or nobody counts
    /// (no memory controller).
    public static func memoryShortage(_ path: String) -> MemoryShortage? {
        guard value(path, "memory.events", key: "oom_kill") ?? 0 > 0 else { return nil }
        // `oom` is counted where the limit is: of this cgroup alone in the second file (Linux 5.2), also of those
        // below, which are the app's own, in the first. What is short above is not counted here.
        let own = value(path, "memory.events.local", key: "oom") ?? value(path, "memory.events", key: "oom")
        return own ?? 0 > 0 ? .ownLimit : .machine
    }

    /// Lowers a limit of memory in steps of what the kernel takes back within milliseconds: a write that asks for more
    /// waits until all of it is done. Whether the limit is what it shall be; else call it again soon, `before` being
    /// what it has returned in `usage`.
    public static func lowerMemory(
        _ path: String,
        _ file: String,
        to wish: UInt64,
        usage before: inout UInt64?
    ) throws(Errno) -> Bool {
        let step: UInt64 = 8 << 20
        let usage = number(path, "memory.current") ?? 0
        // What does not become less cannot be taken back: then the rest is quick too.
        let isStuck = before.map { usage &+ (1 << 20) > $0 } ?? false
        before = usage
        let isLast = usage <= wish &+ step || isStuck
        try File.writeControl(path + "/" + file, "\(isLast ? wish : usage - step)\n")
        return isLast
    }

    /// Takes so many bytes of memory from what is in it and below, page cache first, and waits until that is done
    /// (`memory.reclaim`, Linux 5.19). False when not all of it could be had.
    public static func reclaim(_ path: String, _ bytes: UInt64) throws(Errno) -> Bool {
        do throws(Errno) {
            try File.writeControl(path + "/memory.reclaim", "\(bytes)\n")
            return true
        } catch {
            if error == .resourceTemporarilyUnavailable { return false }
            throw error
        }
    }

    /// Why a controller cannot be had for the cgroups below a place, in half a sentence; nil when it is handed down there.
    ///
    /// - Parameter root: what stands before `/proc`.
    public static func obstacle(to controller: String, at place: String, mount: String, root: String = "") -> String? {
        func words(_ path: String) -> Set<Substring> {
            Set(((try? File.readString(path)) ?? "").split { $0 == " " || $0 == "\n" })
        }
        let name = Substring(controller)
        if words(place + "/cgroup.subtree_control").contains(name) { return nil }
        if words(place + "/cgroup.controllers").contains(name) {
            return "\(place) has processes of its own, so it cannot delegate controllers"
        }
        if words(mount + "/cgroup.controllers").contains(name) {
            return "\(place) did not get it: its unit needs Delegate=yes"
        }
        // memory	4	62	1
        let lines = ((try? File.readString(root + "/proc/cgroups")) ?? "").split(separator: "\n")
        let line = lines.map { $0.split(separator: "\t") }.first {
            $0.count == 4 && ($0[0] == name || (name == "io" && $0[0] == "blkio"))
        }
        guard let line else { return "the kernel does not have it" }
        if line[3] == "0" { return "the kernel has switched it off: boot with cgroup_enable=\(line[0])" }
        return line[1] == "0"
            ? "\(mount) does not have it" : "it is in use as cgroup v1: boot with systemd.unified_cgroup_hierarchy=1"
    }

    /// A file that holds one number, such as `memory.current`; nil when it is not there or says `max`.
    public static func number(_ path: String, _ file: String) -> UInt64? {
        guard let text = try? File.readString(path + "/" + file) else { return nil }
        return text.split(separator: "\n").first.flatMap { UInt64($0) }
    }

    /// One key of a flat file, such as `usage_usec` of `cpu.stat`.
    public static func value(_ path: String, _ file: String, key: String) -> UInt64? {
        guard let text = try? File.read(path + "/" + file) else { return nil }
        return text.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
                let line = rest[..<end]
                rest = rest[end...].dropFirst()
                guard line.starts(with: key.utf8), line.dropFirst(key.utf8.count).first == UInt8(ascii: " ") else {
                    continue
                }
                return UInt64(String(wire: line.dropFirst(key.utf8.count + 1)))
            }
            return nil
        }
    }
}
