// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The cost of downloads: by torpor-transfer for an app, and by plain download programs.
struct Transfers: Measurement {
    let name = "transfers"
    let isOnlyAsked = true

    private func many(_ bench: Bench) -> Int { bench.quick ? 100 : 1_000 }
    private func size(_ bench: Bench) -> Int { bench.quick ? 256 << 20 : 1 << 30 }

    func conditions(_ bench: Bench) -> String {
        "A server on loopback gives a file of \(size(bench) >> 20) MiB by sendfile from a tmpfs; it is written to the disk. "
            + "Torpor computes its SHA-256 and syncs it; its processor time is that of torpor-transfer and torpord. Told: from "
            + "the last byte of 64 KiB to the app, or to the program's exit; floor is one fsync of such a file. Memory: "
            + "torpor-transfer alone, with transfers whose server says nothing more."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "transfer-rate", title: "download of one file", unit: "MiB/s", better: .higher),
            Figure(name: "transfer-cpu", title: "processor time of 1 GiB", unit: "s"),
            Figure(name: "transfer-told", title: "from the last byte to who waits for it", unit: "ms"),
            Figure(name: "transfer-memory-1", title: "memory with 1 download", unit: "MiB"),
            Figure(
                name: "transfer-memory-\(many(bench))",
                title: "memory with \(grouped(many(bench))) downloads",
                unit: "MiB"
            ),
        ]
    }

    func measure(_ run: Run) throws {
        let site = try Site(run.bench, size: size(run.bench))
        defer { site.end() }
        let peers: [any Peer] = [
            Floor(), Torpor(binaries: run.bench.binaries), Downloader.curl, Downloader.aria2,
            Downloader.systemd,
        ]
        try run.interleave("transfers", rounds: run.bench.quick ? 2 : 7, also: peers) { peer in
            switch peer {
            case let peer as Downloader: try downloader(peer, site, run)
            case is Floor: try site.sync(20).forEach { run.record("transfer-told", peer, $0) }
            default: try torpor(peer, site, run)
            }
        }
    }

    private func downloader(_ peer: Downloader, _ site: Site, _ run: Run) throws {
        let folder = try site.folder(peer.name)
        if peer.most == 1 { try site.sum.write(toFile: folder + "/sum", atomically: false, encoding: .utf8) }
        // Warm up: pages that the machine uses for the first time would dominate the cost.
        _ = try Child.time(peer.command([(site.url + "big", "first")], folder))
        unlink(folder + "/first")
        let big = try Child(peer.command([(site.url + "big", "big")], folder))
        let began = now()
        var cpu = 0.0
        _ = try waitUntil(120, step: 0.002) {
            cpu = max(cpu, Processes.cpu([big.pid]))
            return !big.isRunning
        }
        try rate(run, peer, site, now() - began, cpu)
        unlink(folder + "/sum")
        for index in 0..<20 {
            let name = "\(peer.name)\(site.next())"
            let child = try Child(peer.command([(site.url + "last/" + name, "l\(index)")], folder))
            _ = try waitUntil(30, step: 0.0001) { !child.isRunning }
            let ended = now()
            try run.record("transfer-told", peer, (ended - site.sent(name)) * 1e3)
        }
        for count in [1, many(run.bench)] {
            let list = (0..<count).map { (site.url + "slow/\($0)", "s\($0)") }
            guard count <= peer.most else {
                run.note(peer.name, "no more than \(peer.most) downloads at a time")
                continue
            }
            let child = try Child(peer.command(list, folder))
            defer { child.end(grace: 1) }
            try site.waitForFiles(folder, "s", count)
            try run.record("transfer-memory-\(count)", peer, Processes.memory([child.pid]))
        }
    }

    private func rate(_ run: Run, _ peer: any Peer, _ site: Site, _ seconds: Double, _ cpu: Double) throws {
        run.record("transfer-rate", peer, Double(site.size) / 1_048_576 / seconds)
        run.record("transfer-cpu", peer, cpu * Double(1 << 30) / Double(site.size))
    }

    private func torpor(_ peer: any Peer, _ site: Site, _ run: Run) throws {
        let count = many(run.bench)
        let folder = try site.folder("torpor")
        unlink(folder + "/ask")
        guard mkfifo(folder + "/ask", 0o600) == 0 else { throw Trouble("no FIFO in \(folder)") }
        var load = Workload(1)
        load.program = run.bench.root + "/Benchmarks/Programs/transfers.py"
        load.tables = { _, _ in
            """
            environment = { BENCH_TRANSFERS = "\(folder)" }
            ready = "delegate"
            transfers.limit = 100000
            [supervisor.transfers]
            connections = \(count)
            per_app = \(count)
            per_host = \(count)
            min_free = "none"

            """
        }
        try run.session(peer, load) { session in
            try session.start()
            guard try waitUntil(30, { access(folder + "/listening", F_OK) == 0 }) else {
                throw Trouble("its app does not come up")
            }
            try site.ask([("big", "first")], folder)
            _ = try site.told("first", folder)
            unlink(session.folder + "/state/apps/w0/first")
            let helper = {
                session.ownProcesses().first.map { Processes.family($0, children: ["torpor-transfer"]) } ?? []
            }
            let own = { session.ownProcesses().dropFirst() + helper().dropFirst() }
            let before = Processes.cpu(Array(own()))
            let began = now()
            try site.ask([("big", "big")], folder)
            let ended = try site.told("big", folder)
            try rate(run, peer, site, ended - began, Processes.cpu(Array(own())) - before)
            for _ in 0..<20 {
                let name = "torpor\(site.next())"
                try site.ask([("last/" + name, name)], folder)
                let told = try site.told(name, folder)
                try run.record("transfer-told", peer, (told - site.sent(name)) * 1e3)
            }
            var asked = 0
            for wanted in [1, count] {
                try site.ask((asked..<wanted).map { ("slow/\($0)", "s\($0)") }, folder)
                asked = wanted
                let parts = session.folder + "/state/transfers/w0"
                _ = try waitUntil(120, step: 0.02) {
                    let names = (try? FileManager.default.contentsOfDirectory(atPath: parts)) ?? []
                    return names.count { name in
                        var status = stat()
                        return stat(parts + "/" + name, &status) == 0 && status.st_size >= 4096
                    } >= wanted
                }
                let pids = helper().dropFirst()
                guard !pids.isEmpty else { throw Trouble("torpor-transfer is not there") }
                try run.record("transfer-memory-\(wanted)", peer, Processes.memory(Array(pids)))
            }
        }
    }
}

/// The server, its files, and when each was sent.
private final class Site {
    let url: String
    let size: Int
    /// The SHA-256 of the large file.
    let sum: String
    private let served: String
    private let disk: String
    private let server: Child
    private var serial = 0

    init(_ bench: Bench, size: Int) throws {
        self.size = size
        served = bench.memory + "/site"
        disk = bench.disk
        try FileManager.default.createDirectory(atPath: served, withIntermediateDirectories: true)
        let file = open(served + "/big", O_RDWR | O_CREAT | O_TRUNC, 0o644)
        var block = [UInt8](repeating: 0, count: 1 << 20)
        for index in block.indices { block[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
        for _ in 0..<(size >> 20) where write(file, block, block.count) != block.count {
            throw Trouble("no room on \(served)")
        }
        close(file)
        sum = String(try Child.output(["/usr/bin/sha256sum", served + "/big"]).prefix(64))
        var port = UInt16(0)
        var child: Child?
        // If the port is in use, try another.
        for _ in 0..<20 where child == nil {
            port = UInt16.random(in: 20_000..<30_000)
            let next = try Child(
                ["/usr/bin/python3", bench.root + "/Benchmarks/Programs/transfers.py", "serve", served, "\(port)"]
            )
            let path = served + "/serving"
            _ = try waitUntil(10) { access(path, F_OK) == 0 || !next.isRunning }
            if next.isRunning { child = next }
        }
        guard let child else { throw Trouble("the server does not come up") }
        server = child
        url = "http://127.0.0.1:\(port)/"
    }

    func end() {
        server.end(grace: 0)
        try? FileManager.default.removeItem(atPath: served)
    }

    func next() -> Int {
        serial += 1
        return serial
    }

    /// Creates an empty folder on the disk.
    func folder(_ name: String) throws -> String {
        let path = disk + "/transfers-" + name
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    /// The words after a name in a file of lines; waits until the line exists.
    private func line(_ name: String, in path: String) throws -> [Substring] {
        var found: [Substring] = []
        guard
            try waitUntil(
                120,
                step: 0.0005,
                {
                    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
                    found = text.split(separator: "\n").last { $0.hasPrefix(name + " ") }?.split(separator: " ") ?? []
                    return !found.isEmpty
                }
            )
        else { throw Trouble("nothing of \(name) in \(path)") }
        return found
    }

    /// When the last byte of a file was sent, in seconds.
    func sent(_ name: String) throws -> Double { (Double(try line(name, in: served + "/sent")[1]) ?? 0) / 1e9 }

    /// When the app was notified, in seconds.
    func told(_ name: String, _ folder: String) throws -> Double {
        let words = try line(name, in: folder + "/told")
        guard words.count > 2, words[2] == "-" else { throw Trouble("\(words.joined(separator: " "))") }
        return (Double(words[1]) ?? 0) / 1e9
    }

    func ask(_ list: [(path: String, file: String)], _ folder: String) throws {
        let text = list.map { "\(url)\($0.path) \($0.file)\n" }.joined()
        let file = open(folder + "/ask", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw Trouble("no FIFO in \(folder)") }
        defer { close(file) }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Trouble("nobody reads \(folder)/ask") }
            bytes = bytes.dropFirst(count)
        }
    }

    func waitForFiles(_ folder: String, _ prefix: String, _ count: Int) throws {
        guard
            try waitUntil(
                120,
                step: 0.02,
                {
                    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
                    return names.count { $0.hasPrefix(prefix) && !$0.hasSuffix(".aria2") } >= count
                }
            )
        else { throw Trouble("\(count) downloads are not under way") }
    }

    /// The time to write 64 KiB and fsync, in milliseconds each.
    func sync(_ times: Int) throws -> [Double] {
        let folder = try folder("floor")
        return try (0..<times).map { index in
            let file = open(folder + "/\(index)", O_RDWR | O_CREAT, 0o644)
            defer { close(file) }
            let block = [UInt8](repeating: 1, count: 1 << 16)
            guard write(file, block, block.count) == block.count else { throw Trouble("cannot write into \(folder)") }
            let began = now()
            fsync(file)
            return (now() - began) * 1e3
        }
    }
}
