// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing

@testable import Output

/// A folder that goes with the test.
final class Folder {
    let path: String
    init() {
        path = NSTemporaryDirectory() + "torpor-output-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        try! FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }
    func text(_ name: String) -> String {
        (try? Data(contentsOf: URL(fileURLWithPath: path + "/" + name))).map { String(decoding: $0, as: UTF8.self) }
            ?? ""
    }
    /// The lines of a log without their stamps; nil stands for a line that has none.
    func lines(_ name: String) -> [String?] {
        text(name).split(separator: "\n", omittingEmptySubsequences: false).dropLast().map {
            TimeStamp.parse($0.utf8) == nil ? nil : String($0.dropFirst(TimeStamp.length + 1))
        }
    }
}

/// Whose output it is.
final class Owner: OutputCaptureDelegate {
    let log: LogFile
    var troubles: [String] = []
    /// How many batches were written.
    var arrivals = 0

    init(_ log: LogFile) { self.log = log }
    func outputLog(_ capture: OutputCapture) -> LogFile { log }
    func outputArrived(_ capture: OutputCapture) { arrivals += 1 }
    func outputRenewed(_ capture: OutputCapture) {}
    func outputTroubled(_ capture: OutputCapture, _ sentence: String) { troubles.append(sentence) }
}

/// One app's capture in a folder.
final class Rig {
    let loop: EventLoop
    let log: LogFile
    let capture: OutputCapture
    private let owner: Owner
    var troubles: [String] { owner.troubles }
    var arrivals: Int { owner.arrivals }

    init(
        _ folder: Folder,
        _ app: String = "app",
        limits: LogLimits = LogLimits(),
        loop: EventLoop,
        batch: OutputBatch? = nil
    )
        throws
    {
        self.loop = loop
        log = LogFile(path: "\(folder.path)/\(app).log", limits: limits)
        owner = Owner(log)
        capture = OutputCapture(
            app: app,
            fifo: SharedPath("\(folder.path)/\(app).out"),
            delegate: owner,
            batch: try batch ?? OutputBatch(),
            loop: loop
        )
        try capture.start()
    }

    deinit { capture.close() }

    func write(_ text: String) throws {
        let writer = try capture.writerForApp()
        try withExtendedLifetime(writer) { try Descriptor.writeAll(writer.raw, Array(text.utf8)) }
        capture.drain()
    }
}

/// Turns the loop until it is so, at most for that long.
func wait(_ loop: EventLoop, _ limit: Duration = .seconds(30), until done: () -> Bool) throws -> Bool {
    let end = Clock.monotonic() + limit
    while !done() {
        if Clock.monotonic() > end { return false }
        _ = try loop.runOnce(timeout: .milliseconds(20))
    }
    return true
}

/// A shell command that writes into a capture.
func spawn(_ command: String, into writer: Descriptor) throws -> Process {
    let child = Process()
    child.executableURL = URL(fileURLWithPath: "/bin/sh")
    child.arguments = ["-c", command]
    child.standardOutput = FileHandle(fileDescriptor: writer.raw, closeOnDealloc: false)
    try child.run()
    return child
}

@Suite struct OutputCaptureTests {
    private let folder = Folder()

    @Test("each line begins with its time, and a line in pieces has one")
    func stamps() throws {
        let rig = try Rig(folder, loop: EventLoop())
        let begun = Clock.realtimeMicroseconds()
        try rig.write("one\ntwo\nthr")
        try rig.write("ee\n")
        try rig.write("\n\nfour\n")
        #expect(folder.lines("app.log") == ["one", "two", "three", "", "", "four"])
        let time = try #require(TimeStamp.parse(folder.text("app.log").utf8))
        #expect(abs(time - begun) < 60_000_000)
        #expect(rig.troubles == [])
    }

    @Test("an app that has not written anything has no log in memory, though its log has an open line to end")
    func nothingWritten() throws {
        let rig = try Rig(folder, loop: EventLoop())
        _ = try rig.capture.writerForRun()
        #expect(rig.capture.log == nil && folder.text("app.log") == "")
        try File.write(rig.log.path, "of an earlier supervisor")
        _ = try rig.capture.writerForRun()
        #expect(rig.capture.log == nil && folder.text("app.log") == "of an earlier supervisor\n")
        try rig.write("a line\n")
        #expect(rig.capture.log === rig.log && folder.text("app.log").hasSuffix("a line\n"))
    }

    @Test("what ends without a newline is a line of its own")
    func ends() throws {
        let loop = try EventLoop()
        let rig = try Rig(folder, loop: loop)
        rig.capture.endLine()
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/app.log"), "a log without output is not made")
        try rig.write("one\nfatal: no newline")
        rig.capture.endLine()
        rig.capture.endLine()
        try rig.write("two\nthree")
        // Another torpord finds the line that is not ended.
        let other = LogFile(path: folder.path + "/app.log")
        other.endLine()
        try rig.write("four\n")
        #expect(folder.lines("app.log") == ["one", "fatal: no newline", "two", "three", "four"])
        // What is written between the end of a run and the next one gets a line of its own too.
        rig.capture.endLine()
        _ = try rig.capture.writerForRun()
        try rig.write("five")
        rig.capture.endLine()
        try rig.write("late")
        _ = try rig.capture.writerForRun()
        try rig.write("six\n")
        #expect(folder.lines("app.log").suffix(4) == ["four", "five", "late", "six"])
        #expect(rig.troubles == [])
    }

    @Test("a time is formatted as RFC 3339 and read back")
    func time() throws {
        #expect(TimeStamp.string(microseconds: 1_769_860_800_123_456) == "2026-01-31T12:00:00.123Z")
        #expect(TimeStamp.string(microseconds: 951_782_399_999_000) == "2000-02-28T23:59:59.999Z")
        #expect(TimeStamp.string(microseconds: 0) == "1970-01-01T00:00:00.000Z")
        #expect(TimeStamp.string(microseconds: -1) == "1969-12-31T23:59:59.999Z")
        for day in stride(from: Int64(-200_000), to: 2_000_000, by: 9_973) {
            let time = day * 86_400_000_000 + 12_345_678_000
            #expect(TimeStamp.parse(TimeStamp.format(microseconds: time)) == time)
        }
        #expect(TimeStamp.parse("2026-13-31T12:00:00.123Z".utf8) == nil)
        #expect(TimeStamp.parse("2026-01-31 12:00:00.123Z".utf8) == nil)
        #expect(TimeStamp.parse("".utf8) == nil)
    }

    @Test("a million numbered lines arrive once each, in order, across rotations")
    func million() throws {
        let loop = try EventLoop()
        let rig = try Rig(folder, limits: LogLimits(maxSize: 4 << 20, maxFiles: 50), loop: loop)
        let writer = try rig.capture.writerForApp()
        let child = try spawn("exec seq 1 1000000", into: writer)
        writer.close()
        var total: UInt64 = 0
        for number in 1...1_000_000 { total += UInt64(String(number).utf8.count + 1) }
        #expect(try wait(loop, .seconds(120)) { rig.capture.bytesRead >= total })
        child.waitUntilExit()
        #expect(rig.capture.bytesRead == total && rig.log.droppedBytes == 0 && rig.troubles == [])
        var names = ["app.log"]
        while FileManager.default.fileExists(atPath: folder.path + "/app.log.\(names.count)") {
            names.insert("app.log.\(names.count)", at: 0)
        }
        #expect(names.count >= 4)
        var next = 1
        var wrong = 0
        for name in names {
            let data = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/" + name))
            data.withUnsafeBytes { bytes in
                var start = 0
                while let length = UnsafeRawBufferPointer(rebasing: bytes[start...]).firstNewline {
                    var value = 0
                    for byte in bytes[(start + TimeStamp.length + 1)..<(start + length)] {
                        value = value * 10 + Int(byte) - 48
                    }
                    if value != next { wrong += 1 }
                    next += 1
                    start += length + 1
                }
            }
        }
        #expect(wrong == 0 && next == 1_000_001)
    }

    @Test("an app that floods neither delays another's line nor grows the daemon")
    func flood() throws {
        let loop = try EventLoop()
        let batch = try OutputBatch()
        let rigs = try ["flood", "quiet"].map {
            try Rig(folder, $0, limits: LogLimits(maxSize: 8 << 20, maxFiles: 1), loop: loop, batch: batch)
        }
        let writer = try rigs[0].capture.writerForApp()
        let child = try spawn("exec yes 'a line of some length, again and again and again'", into: writer)
        writer.close()
        defer {
            // Not SIGTERM: a test runner may have started with it blocked, and its children inherit that.
            kill(child.processIdentifier, SIGKILL)
            child.waitUntilExit()
        }
        #expect(try wait(loop) { rigs[0].capture.bytesRead > 20 << 20 })
        var timerFired = 0
        let timer = try loop.timer { timerFired += 1 }
        let quiet = try rigs[1].capture.writerForApp()
        // Of the flood, from one line to its place: what it is measured by is the same on a busy machine.
        var worst: UInt64 = 0
        for number in 1...20 {
            let before = rigs[0].capture.bytesRead
            timer.arm(at: Clock.monotonic())
            try Descriptor.writeAll(quiet.raw, Array("line \(number)\n".utf8))
            #expect(try wait(loop, .seconds(60)) { folder.lines("quiet.log").count == number && timerFired == number })
            worst = max(worst, rigs[0].capture.bytesRead - before)
        }
        var laters = 0
        loop.later { laters += 1 }
        #expect(try wait(loop, .seconds(60)) { laters == 1 })
        // A turn takes a quarter of a MiB of it.
        #expect(worst < 16 << 20)
        // Other tests take and give memory in this process too; what a flood took it would take in each part of it.
        var growth: [Int] = []
        for _ in 0..<5 {
            let (memory, read) = (residentBytes(), rigs[0].capture.bytesRead)
            #expect(try wait(loop) { rigs[0].capture.bytesRead > read + (20 << 20) })
            growth.append(residentBytes() - memory)
        }
        #expect(growth.min()! < 8 << 20, "\(growth)")
        let size = (try? File.status(folder.path + "/flood.log", followLinks: false).size) ?? 0
        #expect(size < 40 << 20)
    }

    @Test("an app that floods gets a larger FIFO, one that is quiet does not, and few do")
    func largeFIFO() throws {
        let loop = try EventLoop()
        let batch = try OutputBatch()
        let rigs = try (0..<18).map { try Rig(folder, "app\($0)", loop: loop, batch: batch) }
        func capacity(_ rig: Rig) throws -> Int { try Splice.capacity(#require(rig.capture.descriptorToHold)) }
        func flood(_ rig: Rig) throws {
            let writer = try rig.capture.writerForApp()
            let text = [UInt8](repeating: 0x78, count: 48 << 10)
            for _ in 0..<6 {
                try Descriptor.writeAll(writer.raw, text)
                let begun = rig.capture.bytesRead
                #expect(try wait(loop) { rig.capture.bytesRead > begun })
            }
        }
        let usual = try capacity(rigs[0])
        try rigs[0].write("quiet\n")
        for rig in rigs[1...] { try flood(rig) }
        #expect(try capacity(rigs[0]) == usual)
        #expect(try rigs[1...16].allSatisfy { try capacity($0) == OutputBatch.capacity })
        #expect(try capacity(rigs[17]) == usual)
        // One that is gone makes room.
        rigs[1].capture.close()
        try flood(rigs[17])
        #expect(try capacity(rigs[17]) == OutputBatch.capacity)
    }

    @Test("a writer for the app waits, and the daemon's own ends do not")
    func ownOpenFiles() throws {
        let rig = try Rig(folder, loop: EventLoop())
        let writer = try rig.capture.writerForApp()
        #expect(try !Descriptor.isNonBlocking(writer.raw))
        #expect(try Descriptor.isNonBlocking(#require(rig.capture.descriptorToHold)))
        // What an app left behind in the FIFO is there for the next capture.
        let hold = try Descriptor.duplicate(#require(rig.capture.descriptorToHold))
        rig.capture.close()
        try Descriptor.writeAll(writer.raw, Array("left behind\n".utf8))
        try rig.capture.start()
        rig.capture.drain()
        #expect(folder.lines("app.log") == ["left behind"])
        withExtendedLifetime(hold) {}
    }

    @Test("a FIFO in whose place something else stands is refused with a sentence")
    func notAFifo() throws {
        let path = folder.path + "/x.out"
        #expect(FileManager.default.createFile(atPath: path, contents: Data()))
        let owner = Owner(LogFile(path: path + ".log"))
        let capture = OutputCapture(
            app: "x",
            fifo: SharedPath(path),
            delegate: owner,
            batch: try OutputBatch(),
            loop: try EventLoop()
        )
        #expect(throws: OutputError.self) { try capture.start() }
    }

    private func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (Int(text.split(separator: " ").dropFirst().first ?? "0") ?? 0) * Int(getpagesize())
    }
}

@Suite struct LogFileTests {
    private let folder = Folder()

    @Test("a log is rotated by size, keeps so many files, and tears no line")
    func rotation() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 1_000, maxFiles: 3), loop: EventLoop())
        for number in 0..<200 { try rig.write("line number \(number)\n") }
        #expect(FileManager.default.fileExists(atPath: folder.path + "/app.log.3"))
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/app.log.4"))
        let all =
            (folder.lines("app.log.3") + folder.lines("app.log.2") + folder.lines("app.log.1") + folder.lines("app.log"))
        let first = 200 - all.count
        #expect(all == (first..<200).map { "line number \($0)" })
        for name in ["app.log", "app.log.1", "app.log.2", "app.log.3"] { #expect(folder.text(name).utf8.count < 1_100) }
    }

    @Test("a rotation that fails is known until one succeeds")
    func failedRotation() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 100, maxFiles: 1), loop: EventLoop())
        // A folder that is not empty stands in its way.
        let inTheWay = folder.path + "/app.log.1"
        try File.makeDirectories(inTheWay + "/inner")
        for number in 0..<20 { try rig.write("line number \(number)\n") }
        #expect(rig.log.rotationFailure == .isDirectory && rig.log.failure == nil)
        #expect(folder.lines("app.log").count == 20)
        let log = try File.open(folder.path + "/app.log", .write)
        try File.truncate(log.raw, to: 0)
        try rig.write("line number 0\n")
        #expect(rig.log.rotationFailure == nil, "none is due any more")
        for number in 1..<20 { try rig.write("line number \(number)\n") }
        #expect(rig.log.rotationFailure == .isDirectory)
        try File.removeTree(inTheWay)
        try rig.write("line number 20\n")
        #expect(rig.log.rotationFailure == nil && folder.lines("app.log") == ["line number 20"])
    }

    @Test("the folder of the logs is made again if somebody has removed it")
    func removedFolder() throws {
        let logs = folder.path + "/logs"
        let log = LogFile(path: logs + "/app.log")
        #expect(log.prepare(for: 1, now: 0) && File.exists(logs + "/app.log"))
        try File.removeTree(logs)
        #expect(log.prepare(for: 1, now: 0) && File.exists(logs + "/app.log"))
    }

    @Test("a file whose first line is old is rotated, and old files go")
    func age() throws {
        let old = "2020-01-01T00:00:00.000Z from long ago\n"
        try old.write(toFile: folder.path + "/app.log", atomically: false, encoding: .utf8)
        try "older\n".write(toFile: folder.path + "/app.log.1", atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)],
            ofItemAtPath: folder.path + "/app.log.1"
        )
        let rig = try Rig(folder, limits: LogLimits(maxAge: .seconds(86_400)), loop: EventLoop())
        try rig.write("new\n")
        #expect(folder.lines("app.log") == ["new"])
        #expect(folder.text("app.log.1") == old)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/app.log.2"))
    }

    @Test("a file that was moved away or emptied is begun anew")
    func moved() throws {
        let rig = try Rig(folder, loop: EventLoop())
        try rig.write("one\n")
        try FileManager.default.moveItem(atPath: folder.path + "/app.log", toPath: folder.path + "/kept")
        try rig.write("two\n")
        #expect(folder.lines("app.log") == ["two"] && folder.lines("kept") == ["one"])
        #expect(truncate(folder.path + "/app.log", 0) == 0)
        try rig.write("three\n")
        #expect(folder.lines("app.log") == ["three"])
    }

    @Test("a folder that cannot be used is reported once, output is drained, and logging resumes")
    func failing() throws {
        let logs = folder.path + "/logs"
        try FileManager.default.createDirectory(atPath: logs, withIntermediateDirectories: true)
        let loop = try EventLoop()
        let log = LogFile(path: logs + "/app.log")
        let owner = Owner(log)
        let capture = OutputCapture(
            app: "app",
            fifo: SharedPath(folder.path + "/out"),
            delegate: owner,
            batch: try OutputBatch(),
            loop: loop
        )
        var troubles: [String] { owner.troubles }
        try capture.start()
        defer { capture.close() }
        let writer = try capture.writerForApp()
        func write(_ text: String) throws {
            try Descriptor.writeAll(writer.raw, Array(text.utf8))
            capture.drain()
        }
        try write("one\n")
        try FileManager.default.removeItem(atPath: logs)
        try File.write(logs, "in the way")
        for _ in 0..<20 { try write("lost\n") }
        #expect(troubles.count == 1 && troubles[0].contains("not a directory"))
        #expect(log.droppedBytes == 100)
        try File.remove(logs)
        try FileManager.default.createDirectory(atPath: logs, withIntermediateDirectories: true)
        #expect(
            try wait(loop) {
                try? write("again\n")
                return troubles.count == 2
            }
        )
        let lines = folder.lines("logs/app.log")
        #expect(lines.first??.hasPrefix("torpor: ") ?? false)
        #expect(lines.last == "again" && log.failure == nil)
    }

    @Test("a log that works again is known to, before the app writes its next line")
    func triesAgain() throws {
        let loop = try EventLoop()
        try FileManager.default.createDirectory(atPath: folder.path + "/app.log", withIntermediateDirectories: true)
        let rig = try Rig(folder, loop: loop)
        try rig.write("one\n")
        #expect(rig.log.failure != nil && rig.troubles.count == 1)
        try FileManager.default.removeItem(atPath: folder.path + "/app.log")
        #expect(try wait(loop) { rig.log.failure == nil })
        #expect(rig.troubles.count == 2 && rig.troubles.last?.contains("can be written to again; 4 bytes") == true)
        let lines = folder.lines("app.log")
        #expect(lines.count == 1 && lines[0]?.hasPrefix("torpor: 4 bytes of output are missing here") == true)
    }

    @Test("a disk that is full costs whole lines, and says how much is missing")
    func full() throws {
        guard getuid() == 0 else {
            print("skipped: mounting a small disk needs root")
            return
        }
        let disk = folder.path + "/disk"
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        guard mount("tmpfs", disk, "tmpfs", 0, "size=64k") == 0 else {
            print("skipped: this machine lets nobody mount (\(String(cString: strerror(errno))))")
            return
        }
        defer { umount2(disk, Int32(MNT_DETACH)) }
        let loop = try EventLoop()
        let log = LogFile(path: disk + "/app.log")
        let owner = Owner(log)
        var troubles: [String] { owner.troubles }
        let capture = OutputCapture(
            app: "app",
            fifo: SharedPath(folder.path + "/out"),
            delegate: owner,
            batch: try OutputBatch(),
            loop: loop
        )
        try capture.start()
        defer { capture.close() }
        let writer = try capture.writerForApp()
        var written = 0
        func write() throws {
            try Descriptor.writeAll(writer.raw, Array("numbered \(written)\n".utf8))
            written += 1
            capture.drain()
        }
        while troubles.isEmpty, written < 10_000 { try write() }
        #expect(troubles.count == 1 && troubles[0].contains("no space"))
        for _ in 0..<500 { try write() }
        #expect(troubles.count == 1)
        let kept = folder.lines("disk/app.log")
        #expect(kept == (0..<kept.count).map { "numbered \($0)" } && kept.count > 100)
        #expect(mount("tmpfs", disk, "tmpfs", UInt(MS_REMOUNT), "size=1m") == 0)
        #expect(
            try wait(loop) {
                try? write()
                return troubles.count == 2
            }
        )
        #expect(folder.lines("disk/app.log").last == "numbered \(written - 1)")
        #expect(folder.lines("disk/app.log")[kept.count]?.contains("are missing here") ?? false)
    }
}
