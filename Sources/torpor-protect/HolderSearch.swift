// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Linux
import Varlink
import WireText

/// Finds the processes that use files in protected folders: through descriptors, mappings, or as working or root
/// directory.
///
/// A file belongs to a folder if its path, as this process sees it, is below the folder, or if its inode is one of
/// those in the folder (processes in other mount namespaces see other paths). Processes that this process may not
/// inspect are skipped.
///
/// The search prints each holder as soon as it is found. If reading a process's memory map hangs, because the process's
/// mmap_lock is held, that blocks one thread of the search, and another thread continues.
struct HolderSearch: Sendable {
    /// The most inodes of a folder that are compared.
    static let mostFiles = 200_000
    /// The most descriptors of a process that are inspected.
    private static let mostDescriptors = 100_000
    /// How many different descriptor tables of one process are compared with those of its further threads. If there are
    /// more, each further thread is inspected.
    private static let mostTables = 8
    /// If the kernel cannot compare threads, at most this many threads of a process are inspected.
    private static let mostThreads = 64

    private var apps: [(name: String, path: String)] = []
    private var owners: [FileIdentity: Int] = [:]
    private var devices: Set<UInt64> = []

    mutating func add(_ app: String, _ path: String, _ identities: Set<FileIdentity>) {
        for identity in identities {
            owners[identity] = apps.count
            devices.insert(identity.device)
        }
        apps.append((app, path))
    }

    // MARK: The threads of the search

    private struct Progress {
        var next = 0
        var busy = 0
        /// When a thread last began to inspect a process, or was started for that.
        var since = Clock.monotonic()
        /// When a thread last began to inspect a process.
        var inspected = Clock.monotonic()
        var named: [Int: Int] = [:]
    }

    /// How long one process may take before another thread is started.
    private static let patience = Duration.milliseconds(500)
    private static let mostHelpers = 16
    /// How long no thread may begin to inspect a process before the search is given up. A machine that is busy takes
    /// longer for all processes, but not for one.
    private static let longestHang = Duration.seconds(5)

    /// Searches all processes and prints the holders. First inspects the open files of all processes, which cannot
    /// hang, and then their mappings. Returns whether the search was complete before `end`, and did not hang.
    func search(until end: Duration, print: @escaping @Sendable (JSON) -> Void) -> Bool {
        guard !apps.isEmpty else { return true }
        let pids = ((try? ProcFS.allPids()) ?? []).sorted().filter { $0 != ThisProcess.pid }
        guard !pids.isEmpty else { return false }
        let progress = Monitor(Progress())
        let run: @Sendable () -> Void = { work(pids, progress, print) }
        for _ in 0..<Self.mostHelpers {
            progress.withLock { $0.since = Clock.monotonic() }
            do throws(Errno) { try WorkerThread.start(named: "holders", run) } catch {
                // If no thread can be started, search on this thread. If that hangs, torpord kills this process.
                run()
            }
            let isOver = progress.wait(until: end) { progress, deadline in
                if progress.busy == 0, progress.next == 2 * pids.count { return true }
                let now = Clock.monotonic()
                if now >= end { return false }
                if now - progress.since >= Self.patience { return Bool?.some(false) }
                deadline = min(end, progress.since + Self.patience)
                return nil
            }
            if isOver == true { return true }
            let inspected = progress.withLock { $0.inspected }
            if Clock.monotonic() >= min(end, inspected + Self.longestHang) { return false }
        }
        return false
    }

    private func work(_ pids: [Int32], _ progress: Monitor<Progress>, _ print: @Sendable (JSON) -> Void) {
        progress.withLock { $0.busy += 1 }
        while true {
            let item = progress.withLock { progress -> Int? in
                guard progress.next < 2 * pids.count else { return nil }
                progress.next += 1
                progress.inspected = Clock.monotonic()
                progress.since = progress.inspected
                return progress.next - 1
            }
            guard let item else { break }
            let pid = pids[item % pids.count]
            report(pid, item < pids.count ? opened(pid) : mappings(pid), progress, print)
        }
        progress.withLock { $0.busy -= 1 }
        progress.wake()
    }

    private func report(
        _ pid: Int32,
        _ uses: [(Int, String)],
        _ progress: Monitor<Progress>,
        _ print: @Sendable (JSON) -> Void
    ) {
        guard !uses.isEmpty else { return }
        var files: [Int: (seen: [String], count: Int)] = [:]
        for (app, file) in uses {
            files[app, default: ([], 0)].count += 1
            if files[app]!.seen.count < FileHolder.mostFiles, !files[app]!.seen.contains(file) {
                files[app]!.seen.append(file)
            }
        }
        let name = (try? ProcFS.stat(pid).comm) ?? "?"
        let cgroup = (try? ProcFS.cgroup(pid)) ?? nil
        for (app, use) in files.sorted(by: { $0.key < $1.key }) {
            progress.withLock { progress in
                progress.named[app, default: 0] += 1
                let isNamed = progress.named[app]! <= FileHolder.mostNamed
                let holder = FileHolder(
                    pid: pid,
                    name: name,
                    files: isNamed ? use.seen : Array(use.seen.prefix(1)),
                    count: use.count,
                    cgroup: cgroup
                )
                // Print under the lock, so that lines of different threads do not mix.
                print(ProtectionAnswer.line(apps[app].name, holder))
            }
        }
    }

    // MARK: One process

    /// The files in the folders that a process has open: for each, the index of the app, and the file.
    private func opened(_ pid: Int32) -> [(Int, String)] {
        var found: [(Int, String)] = []
        func look(_ link: String) {
            guard let target = try? File.readLink(link) else { return }
            if let app = app(target, link) { found.append((app, relative(target, app))) }
        }
        let tables = tables(pid)
        for place in tables.folders { for link in ["/cwd", "/root"] { look(place + link) } }
        for place in tables.descriptors {
            for name in ((try? File.list(place + "/fd")) ?? []).prefix(Self.mostDescriptors) {
                look(place + "/fd/" + name)
            }
        }
        return found
    }

    /// The folders in /proc that together show all working directories and descriptors of a process. Threads usually
    /// share one working directory and one table of descriptors, but a thread may have its own (unshare(2),
    /// CLONE_FILES, CLONE_FS). If the main thread has ended, only the other threads show the tables.
    private func tables(_ pid: Int32) -> (folders: [String], descriptors: [String]) {
        let whole = "/proc/\(pid)"
        guard let stat = try? ProcFS.stat(pid), stat.threads > 1, let tasks = try? ProcFS.tasks(pid) else {
            return ([whole], [whole])
        }
        let living = stat.hasEnded ? tasks.filter { $0 != pid } : tasks
        func places(_ kind: TaskComparison.Table) -> [String] {
            var known: [Int32] = []
            for (index, task) in living.enumerated() {
                var isKnown = false
                for other in known.prefix(Self.mostTables) {
                    guard let isSame = TaskComparison.shares(kind, task, other) else {
                        isKnown = index >= Self.mostThreads
                        continue
                    }
                    if isSame { isKnown = true }
                }
                if !isKnown { known.append(task) }
            }
            return known.map { "\(whole)/task/\($0)" }
        }
        return (places(.folders), places(.descriptors))
    }

    /// The files in the folders that a process has mapped.
    private func mappings(_ pid: Int32) -> [(Int, String)] {
        var place = "/proc/\(pid)"
        if let stat = try? ProcFS.stat(pid), stat.hasEnded, stat.threads > 1,
            let task = (try? ProcFS.tasks(pid))?.first(where: { $0 != pid })
        {
            place += "/task/\(task)"
        }
        return mapped(place).compactMap { file, device, inode in
            app(of: file, FileIdentity(device: device, inode: inode)).map { ($0, relative(file, $0)) }
        }
    }

    /// The app whose folder a link in /proc leads into; nil if it leads into none.
    private func app(_ target: String, _ link: String) -> Int? {
        guard target.utf8.first == UInt8(ascii: "/") else { return nil }
        if let app = app(at: target) { return app }
        guard !owners.isEmpty, let identity = try? FileIdentity(of: link) else { return nil }
        return owners[identity]
    }

    private func app(of file: String, _ identity: FileIdentity) -> Int? {
        app(at: file) ?? (devices.contains(identity.device) ? owners[identity] : nil)
    }

    private func app(at path: String) -> Int? {
        apps.firstIndex { path.utf8.starts(with: $0.path.utf8) && Self.ends($0.path, path) }
    }

    /// Whether a path that begins with the folder's text is the folder itself or is below the folder: the longer name
    /// of another folder may begin with the same text.
    private static func ends(_ folder: String, _ path: String) -> Bool {
        let next = path.utf8.dropFirst(folder.utf8.count).first
        return next == nil || next == UInt8(ascii: "/") || next == UInt8(ascii: " ")
    }

    private func relative(_ path: String, _ app: Int) -> String {
        let whole = apps[app].path
        guard path.utf8.count > whole.utf8.count, self.app(at: path) == app else {
            return path == whole ? "." : String(path.prefix(200))
        }
        return String(path.dropFirst(whole.count + 1).prefix(200))
    }

    /// All files that a process has mapped, without duplicates.
    private func mapped(_ place: String) -> [(file: String, device: UInt64, inode: UInt64)] {
        guard let bytes = try? File.read(place + "/maps", limit: 64 << 20) else { return [] }
        var seen: Set<FileIdentity> = []
        var found: [(String, UInt64, UInt64)] = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            // The format of a line: start-end perms offset major:minor inode path
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
            guard fields.count == 6 else { continue }
            let numbers = fields[3].split(separator: UInt8(ascii: ":"))
            guard numbers.count == 2, let major = UInt64(String(wire: Array(numbers[0])), radix: 16),
                let minor = UInt64(String(wire: Array(numbers[1])), radix: 16),
                let inode = UInt64(String(wire: Array(fields[4]))), inode != 0
            else { continue }
            let path = fields[5].drop { $0 == UInt8(ascii: " ") }
            guard path.first == UInt8(ascii: "/") else { continue }
            let identity = FileIdentity(device: FileIdentity.device(major, minor), inode: inode)
            guard seen.insert(identity).inserted else { continue }
            found.append((String(wire: Array(path)), identity.device, inode))
        }
        return found
    }
}
