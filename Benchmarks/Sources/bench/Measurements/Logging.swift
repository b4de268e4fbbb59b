// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An app that writes as fast as it can, until its last line is in the log.
struct Logging: Measurement {
    let name = "log"

    private static let lineBytes = 100

    private func lines(_ bench: Bench) -> Int { (bench.quick ? 64 : 256) << 20 / Self.lineBytes }

    func conditions(_ bench: Bench) -> String {
        "One worker writes \(grouped(lines(bench))) lines of \(Self.lineBytes) bytes, in blocks of 64 KiB, into a pipe (Torpor: "
            + "a FIFO); all logs lie on the same disk. From the worker's start until its last line is in the file; processor "
            + "time of the processes that log (Torpor and supervisord: of the whole supervisor). Every line is looked for "
            + "afterwards: whole, once, in order. Torpor, svlogd, s6-log and multilog stamp each line with the time, "
            + "supervisord and cat do not."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "log-cpu", title: "log for each second of processor time", unit: "MiB", better: .higher),
            Figure(name: "log-rate", title: "log by the clock", unit: "MiB/s", better: .higher),
            Figure(name: "log-lines", title: "log lines by the clock", unit: "1/s", better: .higher),
        ]
    }

    func measure(_ run: Run) throws {
        let count = lines(run.bench)
        let load = Workload(
            1,
            arguments: ["lines", "\(Self.lineBytes)", "\(count * Self.lineBytes)"],
            settings: [
                "torpor": "log_max_size = \"16GiB\"",
                "supervisord": "stdout_logfile = %(here)s/log/w0.log\nstdout_logfile_maxbytes = 0",
            ]
        )
        // With --peers, measure only the log programs that belong to the chosen peers.
        let others = LogProgram.all.filter { program in
            run.peers.contains { $0.name == program.package } || run.peers.contains { $0.name == "floor" }
        }
        let isAsked = { (peer: any Peer) in
            ["floor", "torpor", "supervisord"].contains(peer.name) || peer is LogProgram
        }
        try run.interleave("log", rounds: run.bench.quick ? 1 : 3, also: others, only: isAsked) { peer in
            let isFloor = peer.name == "floor"
            try run.session(isFloor ? LogProgram.copying : peer, load) { session in
                let folder = session.folder + "/log"
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                let (cpu, took) = try measure(session, folder, count)
                let mebibytes = Double(count * Self.lineBytes) / Double(1 << 20)
                let way = isFloor ? "cat" : ""
                run.record("log-cpu", peer, way: way, mebibytes / cpu)
                run.record("log-rate", peer, way: way, mebibytes / took)
                run.record("log-lines", peer, way: way, Double(count) / took)
            }
        }
    }

    private func measure(_ session: Session, _ folder: String, _ count: Int) throws -> (cpu: Double, took: Double) {
        try session.launch()
        // The program that reads the pipe may still be starting.
        var own: [pid_t] = []
        guard
            try waitUntil(
                5,
                { () -> Bool in
                    own = session.ownProcesses()
                    return !own.isEmpty
                }
            )
        else { throw Trouble("the process that logs cannot be found") }
        let before = Processes.exactCPU(own)
        let tail = LogTail(folder: folder, lineBytes: Self.lineBytes)
        guard try waitUntil(120, step: 0.002, { tail.lastNumber() == count - 1 }) else {
            throw Trouble("the last line is not in the log after 120 s; line \(tail.lastNumber() ?? -1) is")
        }
        let took = now() - session.page.started(0)
        let cpu = Processes.exactCPU(own) - before
        guard cpu > 0 else { throw Trouble("no processor time is known of the processes that log") }
        try tail.check(count)
        return (cpu, took)
    }
}

/// Reads the worker's lines back from a log folder: `NUMBER xxx…`, after any timestamp.
struct LogTail {
    let folder: String
    let lineBytes: Int

    /// In the order of writing: names of rotated files begin with their time.
    private var files: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let newest = names.filter { $0 == "current" || $0.hasSuffix(".log") }
        return (names.filter { $0.hasPrefix("@") }.sorted() + newest).map { folder + "/" + $0 }
    }

    /// The number of the last complete line.
    func lastNumber() -> Int? {
        guard let path = files.last else { return nil }
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let size = lseek(file, 0, SEEK_END)
        guard size >= lineBytes else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: lineBytes, alignment: 1) { bytes in
            guard pread(file, bytes.baseAddress, lineBytes, size - off_t(lineBytes)) == lineBytes,
                bytes[lineBytes - 1] == UInt8(ascii: "\n")
            else { return nil }
            return Self.number(UnsafeRawBufferPointer(bytes))
        }
    }

    /// Throws unless every line is there exactly once, complete and in order.
    func check(_ count: Int) throws {
        var next = 0
        for path in files {
            let data = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
            try data.withUnsafeBytes { bytes in
                var start = 0
                while start < bytes.count {
                    try Interruption.check()
                    let base = bytes.baseAddress! + start
                    guard let newline = memchr(base, 0x0a, bytes.count - start) else {
                        throw Trouble("the end of line \(next) is missing in \(path)")
                    }
                    let length = UnsafeRawPointer(newline) - base
                    let text = length - (lineBytes - 1)
                    guard text >= 0 else { throw Trouble("line \(next) is torn: it has \(length) bytes") }
                    let line = UnsafeRawBufferPointer(start: base + text, count: lineBytes)
                    guard Self.number(line) == next, line[11..<lineBytes - 1].allSatisfy({ $0 == UInt8(ascii: "x") })
                    else { throw Trouble("line \(next) is missing, doubled or torn in \(path)") }
                    next += 1
                    start += length + 1
                }
            }
        }
        guard next == count else { throw Trouble("\(next) of \(count) lines are in the log") }
    }

    /// The ten digits at the start of a line.
    private static func number(_ line: UnsafeRawBufferPointer) -> Int? {
        guard line.count > 10, line[10] == UInt8(ascii: " ") else { return nil }
        var number = 0
        for byte in line[..<10] {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            number = number * 10 + Int(byte - 0x30)
        }
        return number
    }
}
