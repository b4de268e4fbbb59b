// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Linux
import WireText

/// Finds the processes that have files of folders open: as descriptors, mapped, or as their working or root directory.
///
/// A file counts if its path is in a folder as this process sees it, or if it is one of the folder's inodes: processes in
/// other mount namespaces see other paths. Processes that may not be inspected are left out.
struct HolderSearch {
    /// The most files of a folder whose inodes are compared.
    static let mostFiles = 200_000
    /// The most descriptors of a process that are looked at.
    private static let mostDescriptors = 100_000

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

    /// The holders by app, in the order of their pids.
    func search() -> [String: [FileHolder]] {
        guard !apps.isEmpty else { return [:] }
        var found: [String: [FileHolder]] = [:]
        for pid in ((try? ProcFS.allPids()) ?? []).sorted() where pid != ThisProcess.pid {
            var files: [Int: (seen: [String], count: Int)] = [:]
            for (app, file) in uses(pid) {
                files[app, default: ([], 0)].count += 1
                if files[app]!.seen.count < FileHolder.mostFiles, !files[app]!.seen.contains(file) {
                    files[app]!.seen.append(file)
                }
            }
            guard !files.isEmpty else { continue }
            let name = (try? ProcFS.stat(pid).comm) ?? "?"
            for (app, use) in files {
                found[apps[app].name, default: []].append(
                    FileHolder(pid: pid, name: name, files: use.seen, count: use.count)
                )
            }
        }
        return found
    }

    /// What a process uses of the folders: the app, and the file.
    private func uses(_ pid: Int32) -> [(Int, String)] {
        var found: [(Int, String)] = []
        var place = "/proc/\(pid)"
        func look(_ link: String) {
            guard let target = try? File.readLink(link) else { return }
            if let app = app(target, link) { found.append((app, relative(target, app))) }
        }
        // If only the main thread has ended, the others still show the descriptors.
        if let stat = try? ProcFS.stat(pid), stat.hasEnded, stat.threads > 1,
            let task = (try? ProcFS.tasks(pid))?.first(where: { $0 != pid })
        {
            place += "/task/\(task)"
        }
        for link in ["/cwd", "/root"] { look(place + link) }
        for name in ((try? File.list(place + "/fd")) ?? []).prefix(Self.mostDescriptors) { look(place + "/fd/" + name) }
        for (file, device, inode) in mapped(place) {
            guard let app = app(of: file, FileIdentity(device: device, inode: inode)) else { continue }
            found.append((app, relative(file, app)))
        }
        return found
    }

    /// The folder that a link of /proc leads into.
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

    /// Whether a path with this beginning is the folder or below it, and does not merely begin like it.
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

    /// The files that a process has mapped, each once.
    private func mapped(_ place: String) -> [(file: String, device: UInt64, inode: UInt64)] {
        guard let bytes = try? File.read(place + "/maps", limit: 64 << 20) else { return [] }
        var seen: Set<FileIdentity> = []
        var found: [(String, UInt64, UInt64)] = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            // start-end perms offset major:minor inode path
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
