// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing

@testable import Output

@Suite struct OutputBatchTests {
    private let folder = Folder()

    /// A batch as a daemon leaves it that is killed: the header of a phase, raw bytes, and so much of it in the log.
    private func leave(_ raw: String, appending: Bool, log: LogFile) throws -> OutputBatch {
        let batch = try OutputBatch()
        try batch.beginFilling(for: log)
        if appending { try batch.beginAppending(to: log, stamp: 1_769_860_800_000_000) }
        try File.write(batch.descriptor.raw, at: OutputBatch.headerSize, Array(raw.utf8))
        return batch
    }

    private func recover(_ batch: OutputBatch, _ log: LogFile) throws -> Int {
        let again = OutputBatch(recovering: try batch.descriptor.duplicate())
        return try again.recover { $0 == log.path ? LogFile(path: $0) : nil }
    }

    @Test("killed while filling: the batch is completed")
    func filling() throws {
        let log = LogFile(path: folder.path + "/app.log")
        let batch = try leave("one\ntwo\n", appending: false, log: log)
        #expect(try recover(batch, log) == 8)
        #expect(folder.lines("app.log") == ["one", "two"])
        #expect(try recover(batch, log) == 0)
        #expect(folder.lines("app.log") == ["one", "two"])
    }

    @Test(
        "killed while appending, wherever: the batch is repeated and nothing is there twice",
        arguments: [0, 1, 30, 58]
    )
    func appending(written: Int) throws {
        let log = LogFile(path: folder.path + "/app.log")
        let rig = try Rig(folder, loop: EventLoop())
        try rig.write("zero\nhal")
        #expect(log.prepare(for: 0, now: 0))
        let batch = try leave("f\none\ntwo\n", appending: true, log: log)
        let full = "f\n2026-01-31T12:00:00.000Z one\n2026-01-31T12:00:00.000Z two\n"
        let handle = try #require(FileHandle(forWritingAtPath: log.path))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(full.utf8.prefix(written)))
        try handle.close()
        #expect(try recover(batch, log) == 10)
        #expect(folder.lines("app.log") == ["zero", "half", "one", "two"])
        #expect(folder.text("app.log").hasSuffix(full))
    }

    @Test("killed after others were done: those are not repeated", arguments: [false, true])
    func later(isAppending: Bool) throws {
        let loop = try EventLoop()
        let path = folder.path + "/batch"
        let batch = try OutputBatch(path: path)
        let rig = try Rig(folder, loop: loop, batch: batch)
        for number in 1...100 { try rig.write("line \(number)\n") }
        let size = try File.status(path).size
        #expect(size > OutputBatch.headerSize, "what is done is not cleared away line by line")
        let before = folder.text("app.log")
        try batch.beginFilling(for: rig.log)
        try File.write(batch.descriptor.raw, at: size, Array("line 101\nline 1".utf8))
        if isAppending {
            try batch.beginAppending(to: rig.log, stamp: 1_769_860_800_000_000)
            let handle = try #require(FileHandle(forWritingAtPath: rig.log.path))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data("2026-01-31T12:00:00.000Z line 1".utf8))
            try handle.close()
        }
        // Found by its path, as it is when the keeper is gone too.
        let again = OutputBatch(recovering: try File.open(path, .readWrite))
        #expect(try again.recover { LogFile(path: $0) } == 15)
        #expect(folder.text("app.log").hasPrefix(before))
        #expect(folder.text("app.log").hasSuffix(" line 1"))
        #expect(folder.lines("app.log") == (1...101).map { "line \($0)" })
        #expect(try again.recover { LogFile(path: $0) } == 0)
    }

    /// A file in the place of the log: it cannot be written until the file is removed.
    private func obstruct(_ log: String) throws {
        try FileManager.default.createDirectory(atPath: log, withIntermediateDirectories: true)
    }

    private let notice = "torpor: 8 bytes of output are missing here"

    @Test("what a torpord has dropped that was killed is said by the next, once", arguments: [false, true])
    func loss(isKilledWhileDropping: Bool) throws {
        let path = folder.path + "/batch"
        let log = folder.path + "/app.log"
        let batch = try OutputBatch(path: path)
        let rig = try Rig(folder, loop: EventLoop(), batch: batch)
        try obstruct(log)
        if isKilledWhileDropping {
            try batch.beginFilling(for: rig.log)
            try File.write(batch.descriptor.raw, at: OutputBatch.headerSize, Array("one\ntwo\n".utf8))
            try batch.beginDropping(8, of: rig.log)
        } else {
            try rig.write("one\ntwo\n")
            #expect(rig.log.droppedBytes == 8)
        }
        // Recovered twice, as if the second had been killed too.
        _ = try OutputBatch(recovering: File.open(path, .readWrite)).recover { LogFile(path: $0) }
        let next = OutputBatch(recovering: try File.open(path, .readWrite))
        #expect(try next.recover { LogFile(path: $0) } == 0)
        #expect(next.hasLosses)
        next.reportLoss(of: LogFile(path: log))
        try FileManager.default.removeItem(atPath: log)
        let again = try Rig(folder, loop: EventLoop(), batch: next)
        try again.write("three\n")
        #expect(folder.lines("app.log") == [notice, "three"])
        #expect(!next.hasLosses)
        let last = OutputBatch(recovering: try File.open(path, .readWrite))
        try last.recover { LogFile(path: $0) }
        last.reportLoss(of: LogFile(path: log))
        #expect(folder.lines("app.log") == [notice, "three"])
    }

    @Test("the notice of a loss is there once, wherever torpord was killed", arguments: [0, 20, 200])
    func noting(written: Int) throws {
        let log = LogFile(path: folder.path + "/app.log")
        let batch = try OutputBatch()
        #expect(log.prepare(for: 0, now: 0))
        batch.drop(8, of: log)
        try batch.beginFilling(for: log)
        try batch.beginAppending(to: log, stamp: 1_769_860_800_000_000, phase: .noting)
        try File.write(log.path, String("2026-01-31T12:00:00.000Z \(notice)\n".prefix(written)))
        let next = OutputBatch(recovering: try batch.descriptor.duplicate())
        #expect(try next.recover { LogFile(path: $0) } == 0)
        next.reportLoss(of: LogFile(path: log.path))
        #expect(folder.lines("app.log") == [notice] && !next.hasLosses)
    }

    @Test("a batch that finds its log unwritable at the recovery is counted, and said in its place")
    func lossAtRecovery() throws {
        let log = LogFile(path: folder.path + "/app.log")
        let batch = try leave("one\ntwo\n", appending: false, log: log)
        try obstruct(log.path)
        #expect(try recover(batch, log) == 8)
        try FileManager.default.removeItem(atPath: log.path)
        let next = OutputBatch(recovering: try batch.descriptor.duplicate())
        #expect(try next.recover { LogFile(path: $0) } == 0)
        // A new file, as after the repair of the runtime directory.
        try next.move(to: folder.path + "/moved")
        let rig = try Rig(folder, loop: EventLoop(), batch: next)
        try rig.write("three\n")
        #expect(folder.lines("app.log") == [notice, "three"])
        next.drop(3, of: rig.log)
        next.forgetLoss(of: log.path)
        #expect(!next.hasLosses)
    }

    @Test("finished batches that cannot be truncated stay, and so do the losses")
    func untruncatable() throws {
        let log = LogFile(path: folder.path + "/app.log")
        let batch = try leave("one\ntwo\n", appending: false, log: log)
        batch.drop(8, of: log)
        // F_ADD_SEALS and F_SEAL_SHRINK, which need _GNU_SOURCE: ftruncate(2) fails, as on a disk with errors.
        try #require(fcntl(batch.descriptor.raw, 1_033, 2) == 0)
        #expect(try recover(batch, log) == 8)
        #expect(folder.lines("app.log") == [notice, "one", "two"])
        let next = OutputBatch(recovering: try batch.descriptor.duplicate())
        #expect(try next.recover { LogFile(path: $0) } == 0)
        let rig = try Rig(folder, loop: EventLoop(), batch: next)
        try rig.write("three\n")
        #expect(folder.lines("app.log") == [notice, "one", "two", "three"])
    }

    @Test("losses of logs whose apps were removed make room for others at the next start")
    func removed() throws {
        let batch = try OutputBatch()
        let paths = (0..<300).map { folder.path + "/app\($0).log" }
        for path in paths.prefix(256) { batch.drop(8, of: LogFile(path: path)) }
        let next = OutputBatch(recovering: try batch.descriptor.duplicate())
        try next.recover { LogFile(path: $0) }
        next.forgetLosses(exceptOf: [paths[7], paths[299]])
        func loss(_ path: String) -> UInt64 {
            let log = LogFile(path: path)
            next.restoreLoss(of: log)
            return log.droppedNow
        }
        #expect(loss(paths[7]) == 8 && loss(paths[8]) == 0 && loss(paths[299]) == 0)
        next.drop(9, of: LogFile(path: paths[299]))
        #expect(loss(paths[299]) == 9 && loss(paths[7]) == 8)
        next.forgetLosses(exceptOf: [])
        #expect(!next.hasLosses)
    }

    @Test("a batch of Torpor 0.2 is completed", arguments: [false, true])
    func old(isAppending: Bool) throws {
        let log = LogFile(path: folder.path + "/app.log")
        #expect(log.prepare(for: 0, now: 0))
        let batch = try OutputBatch()
        try batch.beginFilling(for: log)
        if isAppending { try batch.beginAppending(to: log, stamp: 1_769_860_800_000_000) }
        try File.write(batch.descriptor.raw, at: 0, Array("TORPOUT2".utf8))
        try File.write(batch.descriptor.raw, at: 12, [0, 16, 0, 0])
        try File.truncate(batch.descriptor.raw, to: 4_096)
        try File.write(batch.descriptor.raw, at: 4_096, Array("one\ntwo\n".utf8))
        #expect(try recover(batch, log) == 8)
        #expect(folder.lines("app.log") == ["one", "two"])
        #expect(try File.status(descriptor: batch.descriptor.raw).size == OutputBatch.headerSize)
        #expect(try recover(batch, log) == 0)
        #expect(folder.lines("app.log") == ["one", "two"])
    }

    @Test("the table of losses takes as many logs as it has places, and gives them back")
    func table() throws {
        let batch = try OutputBatch()
        let logs = (0..<300).map { LogFile(path: "/\($0).log") }
        for (number, log) in logs.enumerated() { batch.drop(number + 1, of: log) }
        func losses() -> [UInt64] {
            logs.map {
                let log = LogFile(path: $0.path)
                batch.restoreLoss(of: log)
                return log.droppedNow
            }
        }
        batch.forgetLoss(of: "/7.log")
        batch.drop(5, of: logs[299])
        var expected = (1...300).map { $0 <= 256 ? UInt64($0) : 0 }
        expected[7] = 0
        expected[299] = 305
        #expect(losses() == expected)
    }

    @Test("the file of batches does not grow")
    func bounded() throws {
        let path = folder.path + "/batch"
        let rig = try Rig(folder, loop: EventLoop(), batch: OutputBatch(path: path))
        let line = String(repeating: "x", count: 999) + "\n"
        var largest: UInt64 = 0
        for _ in 0..<500 {
            try rig.write(line)
            largest = max(largest, try File.status(path).size)
        }
        #expect(largest < 100 << 10)
        #expect(folder.lines("app.log").count == 500)
    }

    @Test("a memory file that says nothing sensible is emptied")
    func garbage() throws {
        let memory = try Memory.file(named: "x")
        try File.write(memory.raw, at: 0, [UInt8](repeating: 0xa5, count: 9_000))
        #expect(try OutputBatch(recovering: memory).recover { _ in nil } == 0)
        #expect(try File.status(descriptor: memory.raw).size == OutputBatch.headerSize)
    }
}
