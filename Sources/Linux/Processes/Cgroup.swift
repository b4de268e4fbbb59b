// SPDX-License-Identifier: Apache-2.0

import CLinux
import WireText

/// Control groups (cgroup v2), by absolute path.
public enum Cgroup {
    /// The mount point of the v2 hierarchy; nil if it is not mounted.
    public static func mountPoint(mountInfo: String = "/proc/self/mountinfo") -> String? {
        guard let text = try? File.readString(mountInfo, limit: 1 << 24) else { return nil }
        for line in text.split(separator: "\n") {
            // A line looks like this: 31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw
            let fields = line.split(separator: " ")
            guard let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count, fields.count > 4 else { continue }
            if fields[dash + 1] == "cgroup2" { return unescaped(fields[4]) }
        }
        return nil
    }

    /// The mount point of the v2 hierarchy, looked up only once.
    public static let mount = mountPoint()

    /// Creates a cgroup. Returns false if the cgroup exists already.
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

    /// Removes a cgroup; no error if it does not exist. Throws EBUSY if it has processes or children.
    public static func remove(_ path: String) throws(Errno) {
        do throws(Errno) {
            try File.removeDirectory(path)
        } catch {
            if error != .noSuchFileOrDirectory { throw error }
        }
    }

    /// Removes a cgroup and all cgroups below it. None of them may contain processes.
    public static func removeTree(_ path: String) throws(Errno) {
        do throws(Errno) {
            return try remove(path)
        } catch {
            guard error == .resourceBusy else { throw error }
        }
        for child in children(path) { try removeTree(child) }
        try remove(path)
    }

    /// The cgroups directly below a cgroup. Most cgroups have none; the directory's link count shows this without a
    /// stat(2) of each file. Leaves out the cgroups whose paths are in `known`.
    public static func children(
        _ path: String,
        except known: Set<String> = [],
        from folder: CgroupFolder? = nil
    ) -> [String] {
        let place = CgroupFolder.place(of: "", in: path, from: folder)
        guard let links = try? File.status(place.path, in: place.directory).links, links != 2 else { return [] }
        return ((try? File.list(path)) ?? []).map { path + "/" + $0 }.filter {
            !known.contains($0) && (try? File.status($0, followLinks: false).kind) == .directory
        }
    }

    /// The processes of a cgroup and of all cgroups below it. Zombies are not listed.
    public static func procs(_ path: String, from folder: CgroupFolder? = nil) throws(Errno) -> [Int32] {
        let place = CgroupFolder.place(of: "/cgroup.procs", in: path, from: folder)
        var result = try File.withKernelFile(at: place.path, in: place.directory, limit: 1 << 24) { bytes in
            var pids: [Int32] = []
            var number: Int32 = 0
            for byte in bytes {
                if byte == UInt8(ascii: "\n") {
                    pids.append(number)
                    number = 0
                } else {
                    number = number &* 10 &+ Int32(byte &- UInt8(ascii: "0"))
                }
            }
            return pids
        }
        for child in children(path, from: folder) { result += (try? procs(child)) ?? [] }
        return result
    }

    /// Moves a process into the cgroup.
    public static func add(_ path: String, pid: Int32) throws(Errno) {
        try File.writeControl(path + "/cgroup.procs", "\(pid)\n")
    }

    /// Sends SIGKILL to all processes in the cgroup and below it in one step (Linux 5.14).
    public static func kill(_ path: String) throws(Errno) { try File.writeControl(path + "/cgroup.kill", "1\n") }

    /// Starts to freeze or thaw the cgroup. ``events(_:)`` reports when this is complete.
    public static func freeze(_ path: String, _ on: Bool) throws(Errno) {
        try File.writeControl(path + "/cgroup.freeze", on ? "1\n" : "0\n")
    }

    /// Starts to thaw the cgroup and all cgroups below it.
    public static func thawTree(_ path: String) {
        try? freeze(path, false)
        for child in children(path) { thawTree(child) }
    }

    /// Whether the cgroup or a cgroup below it has processes, and whether all of these processes are frozen.
    public static func events(_ path: String) throws(Errno) -> (populated: Bool, frozen: Bool) {
        try File.withKernelFile(path + "/cgroup.events") { bytes in
            let lines = bytes.split(separator: UInt8(ascii: "\n"))
            return (lines.contains { $0.elementsEqual(populated) }, lines.contains { $0.elementsEqual(frozen) })
        }
    }

    /// Whether the cgroup or a cgroup below it has processes, and all of these processes are frozen. The kernel reports
    /// a cgroup with both processes and children as frozen as soon as its own processes are frozen, so this function
    /// also checks each child.
    public static func isFrozen(_ path: String) -> Bool {
        guard let events = try? events(path), events.populated, events.frozen else { return false }
        return children(path).allSatisfy { (try? Self.events($0).populated) != true || isFrozen($0) }
    }

    private static let populated = Array("populated 1".utf8)
    private static let frozen = Array("frozen 1".utf8)

    /// Whether systemd has delegated the cgroup's subtree to the process that runs in it (Delegate=yes). systemd marks
    /// such a cgroup with an extended attribute, which this function reads.
    public static func isDelegated(_ path: String) -> Bool {
        ["trusted.delegate", "user.delegate"].contains { name in
            var value: UInt8 = 0
            return tlx_attribute(path, name, &value, 1) == 1 && value == UInt8(ascii: "1")
        }
    }

    /// Whether this cgroup's own setting requests that it be frozen, even if it is not completely frozen yet.
    public static func isFreezeWanted(_ path: String) -> Bool {
        (try? File.withKernelFile(path + "/cgroup.freeze") { $0.first }) == UInt8(ascii: "1")
    }

    /// Which memory shortage made the kernel kill processes of a cgroup.
    public enum MemoryShortage: Hashable, Sendable {
        /// The cgroup had reached its own `memory.max`.
        case ownLimit
        /// The machine, or a cgroup above this one, was out of memory.
        case machine
    }

    /// Why the OOM killer has killed processes in the cgroup or below it. Nil if it has killed none, or if the cgroup
    /// has no memory controller.
    public static func memoryShortage(_ path: String) -> MemoryShortage? {
        guard value(path, "memory.events", key: "oom_kill") ?? 0 > 0 else { return nil }
        // The kernel counts `oom` for the cgroup whose limit was reached. memory.events.local (Linux 5.2) counts only
        // for that cgroup. memory.events, used on older kernels, also counts for its descendants, which belong to the
        // same app. If the limit of a cgroup above was reached, neither file counts it.
        let own = value(path, "memory.events.local", key: "oom") ?? value(path, "memory.events", key: "oom")
        return own ?? 0 > 0 ? .ownLimit : .machine
    }

    /// Lowers a memory limit by one step, small enough for the kernel to reclaim within milliseconds. A larger step
    /// would block the write until all the memory is reclaimed. Returns true when the limit has reached `wish`. Until
    /// then, call this function repeatedly with the same variable for `usage`, in which it stores the memory usage
    /// between calls.
    public static func lowerMemory(
        _ path: String,
        _ file: String,
        to wish: UInt64,
        usage before: inout UInt64?
    ) throws(Errno) -> Bool {
        let step: UInt64 = 8 << 20
        let usage = number(path, "memory.current") ?? 0
        // If the usage no longer falls, the kernel can reclaim nothing more. A large last step then does not block for
        // long.
        let isStuck = before.map { usage &+ (1 << 20) > $0 } ?? false
        before = usage
        let isLast = usage <= wish &+ step || isStuck
        try File.writeControl(path + "/" + file, "\(isLast ? wish : usage - step)\n")
        return isLast
    }

    /// Reclaims `bytes` from the cgroup and all cgroups below it, page cache first, and blocks until done
    /// (`memory.reclaim`, Linux 5.19). Returns false if the kernel could not reclaim that much.
    public static func reclaim(_ path: String, _ bytes: UInt64) throws(Errno) -> Bool {
        do throws(Errno) {
            try File.writeControl(path + "/memory.reclaim", "\(bytes)\n")
            return true
        } catch {
            if error == .resourceTemporarilyUnavailable { return false }
            throw error
        }
    }

    /// Why the cgroups below `place` cannot use a controller, as the rest of a sentence. Nil if the controller is
    /// enabled there.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
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
        // A line looks like this: memory	4	62	1 (controller, hierarchy, cgroups, enabled)
        let lines = ((try? File.readString(root + "/proc/cgroups")) ?? "").split(separator: "\n")
        let line = lines.map { $0.split(separator: "\t") }.first {
            $0.count == 4 && ($0[0] == name || (name == "io" && $0[0] == "blkio"))
        }
        guard let line else { return "the kernel does not have it" }
        if line[3] == "0" { return "the kernel has switched it off: boot with cgroup_enable=\(line[0])" }
        return line[1] == "0"
            ? "\(mount) does not have it" : "it is in use as cgroup v1: boot with systemd.unified_cgroup_hierarchy=1"
    }

    /// Reads a file with one number, such as `memory.current`; nil if the file is missing or contains `max`.
    public static func number(_ path: String, _ file: String, from folder: CgroupFolder? = nil) -> UInt64? {
        let place = CgroupFolder.place(of: "/" + file, in: path, from: folder)
        let found = try? File.withKernelFile(at: place.path, in: place.directory) { bytes in
            number(bytes.prefix { $0 != UInt8(ascii: "\n") })
        }
        return found ?? nil
    }

    /// Reads the value of one key from a file with a key and a value on each line, such as `usage_usec` in `cpu.stat`.
    public static func value(
        _ path: String,
        _ file: String,
        key: String,
        from folder: CgroupFolder? = nil
    ) -> UInt64? {
        let place = CgroupFolder.place(of: "/" + file, in: path, from: folder)
        let found = try? File.withKernelFile(at: place.path, in: place.directory) { bytes -> UInt64? in
            var rest = bytes[...]
            while !rest.isEmpty {
                let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
                let line = rest[..<end]
                rest = rest[end...].dropFirst()
                guard line.starts(with: key.utf8), line.dropFirst(key.utf8.count).first == UInt8(ascii: " ") else {
                    continue
                }
                return number(line.dropFirst(key.utf8.count + 1))
            }
            return nil
        }
        return found ?? nil
    }

    /// Parses a decimal number; nil for an empty text and for a text that is not a number, such as `max`.
    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> UInt64? {
        guard !digits.isEmpty else { return nil }
        var value: UInt64 = 0
        for byte in digits {
            let digit = byte &- UInt8(ascii: "0")
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflows) = product.addingReportingOverflow(UInt64(digit))
            guard digit < 10, !isTooLarge, !overflows else { return nil }
            value = sum
        }
        return value
    }
}
