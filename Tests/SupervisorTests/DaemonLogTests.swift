// SPDX-License-Identifier: Apache-2.0

import Configuration
import EngineHarness
import Foundation
import Linux
import Testing
import TorporAPI

@testable import Engine
@testable import Supervisor

@Suite("The daemon's own log")
struct DaemonLogTests {
    /// A folder with the two sockets of a journal, and a connection to the one for streams.
    private final class Journal {
        let folder: String
        let entries: Descriptor
        let stream: Descriptor
        let read: Descriptor
        var path: String { folder + "/socket" }

        init() throws {
            folder = NSTemporaryDirectory() + "torpor-log-\(UUID().uuidString)"
            try File.makeDirectory(folder)
            entries = try Sockets.bindDatagram(path: folder + "/socket")
            (stream, read) = try Sockets.pair(.stream)
            try Descriptor.setNonBlocking(read.raw)
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        func log(_ level: LogLevel = .info) -> DaemonLog {
            DaemonLog(
                level: level,
                descriptor: stream.raw,
                stream: JournalSocket.streamName(of: stream.raw),
                journal: path
            )
        }

        var entry: String? {
            (try? Sockets.receive(entries.raw, maximum: 1 << 18)).flatMap { $0 }.map {
                String(decoding: $0.bytes, as: UTF8.self)
            }
        }
        var lines: String {
            (try? Descriptor.read(read.raw, maximum: 1 << 20)).flatMap { $0 }.map {
                String(decoding: $0, as: UTF8.self)
            } ?? ""
        }
    }

    @Test("writes entries with fields where standard error is a stream of the journal, and no lines")
    func entries() throws {
        let journal = try Journal()
        let log = journal.log()
        log.write("web is active", .info, [(name: "TORPOR_APP", value: "web")])
        #expect(
            journal.entry == "MESSAGE=web is active\nPRIORITY=6\nSYSLOG_IDENTIFIER=torpord\nTORPOR_APP=web\n"
        )
        #expect(journal.lines.isEmpty)
        log.error("one\ntwo")
        #expect(try #require(journal.entry).contains("PRIORITY=3\n"))
    }

    @Test("drops what is below its level")
    func level() throws {
        let journal = try Journal()
        let log = journal.log(.warning)
        log.info("not this")
        log.notice("nor this")
        log.warning("this")
        #expect(try #require(journal.entry).hasPrefix("MESSAGE=this\n"))
        #expect(journal.entry == nil)
    }

    @Test("writes a line with a priority where the journal takes no entry")
    func noSocket() throws {
        let journal = try Journal()
        try File.remove(journal.path)
        let log = journal.log()
        log.warning("one\ntwo")
        #expect(journal.lines == "<4>one two\n")
    }

    @Test("writes what an app has said as one line that no terminal acts on, wherever it goes")
    func hostile() throws {
        let said =
            "web failed: \u{1b}]0;OWNED\u{7}\u{1b}[2J\r\n"
            + "<3>torpord: web: was given up \u{9b}31m\u{202e}x\u{2028}y\u{7f}\n"
        let line =
            "web failed: \u{fffd}]0;OWNED\u{fffd}\u{fffd}[2J  "
            + "<3>torpord: web: was given up \u{fffd}31m\u{fffd}x y\u{fffd}"
        let journal = try Journal()
        journal.log().write(said, .warning, [(name: "TORPOR_REASON", value: "a\nb")])
        let entry = try #require(journal.entry)
        #expect(entry.hasPrefix("MESSAGE=\(line)\nPRIORITY=4\nSYSLOG_IDENTIFIER=torpord\nTORPOR_REASON\n"))
        try File.remove(journal.path)
        journal.log().warning(said)
        #expect(journal.lines == "<4>\(line)\n")
        let plain = try Journal()
        DaemonLog(level: .info, descriptor: plain.stream.raw, stream: nil, journal: plain.path).warning(said)
        #expect(plain.lines == "torpord: \(line)\n")
    }

    @Test("writes a line when an entry is too large for a datagram, or the journal has no room")
    func noRoom() throws {
        let journal = try Journal()
        let log = journal.log()
        let large = String(repeating: "x", count: 1 << 20)
        log.write("too large", .info, [(name: "FIELD", value: large)])
        #expect(journal.lines == "<6>too large\n")
        var sent = 0
        while sent < 100_000, journal.lines.isEmpty {
            log.info("\(sent)")
            sent += 1
        }
        // The queue of datagrams was full, and nothing waited for it.
        #expect(sent > 1 && sent < 100_000)
        while journal.entry != nil {}
        log.info("again")
        #expect(try #require(journal.entry).hasPrefix("MESSAGE=again\n"))
    }

    @Test("goes on with a journal that was started anew")
    func restarted() throws {
        let journal = try Journal()
        let log = journal.log()
        log.info("before")
        #expect(journal.entry != nil)
        journal.entries.close()
        log.info("meanwhile")
        #expect(journal.lines == "<6>meanwhile\n")
        let again = try Sockets.bindDatagram(path: journal.path)
        log.info("after")
        let entry = try #require(try Sockets.receive(again.raw, maximum: 4096))
        #expect(String(decoding: entry.bytes, as: UTF8.self).hasPrefix("MESSAGE=after\n"))
    }

    @Test("never waits for a stream that nobody reads, and says later how much was lost")
    func stuck() throws {
        let journal = try Journal()
        try File.remove(journal.path)
        let log = journal.log()
        let text = String(repeating: "y", count: 1000)
        for _ in 0..<1000 { log.info(text) }
        while !journal.lines.isEmpty {}
        log.info("again")
        let lines = journal.lines.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("<4>torpord: ") ?? false)
        #expect(lines.first?.hasSuffix("lines of the log were lost: no process read them") ?? false)
        #expect(lines.last == "<6>again")
    }

    @Test("writes the last words of a program as lines of the journal's stream, not to the journal's socket")
    func lines() throws {
        let journal = try Journal()
        journal.log().writeLines("one\n\ntwo\n", .error)
        #expect(journal.lines == "<3>one\n<3>two\n")
        #expect(journal.entry == nil)
    }

    @Test("writes plain lines without a journal, and where JOURNAL_STREAM is about something else")
    func plain() throws {
        for stream in [nil, "", "1:2", "1", "nonsense:more", "1:2:3"] {
            let journal = try Journal()
            let log = DaemonLog(level: .info, descriptor: journal.stream.raw, stream: stream, journal: journal.path)
            log.write("a line", .error, [(name: "TORPOR_APP", value: "web")])
            #expect(journal.lines == "torpord: a line\n")
            #expect(journal.entry == nil)
        }
    }

    @Test("writes what is held back afterwards, in its order, and a warning at once with all that came before it")
    func heldBack() throws {
        let journal = try Journal()
        let (read, pipe) = try Descriptor.pipe()
        try Descriptor.setNonBlocking(read.raw)
        let path = journal.folder + "/log"
        let file = try File.open(path, [.readWrite, .append, .create], mode: 0o600)
        func text() -> String {
            (try? Descriptor.read(read.raw, maximum: 4096)).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
                ?? ""
        }
        for output in [pipe, file] {
            let log = DaemonLog(level: .info, descriptor: output.raw, stream: nil)
            let written = { output === file ? (try? File.readString(path)) ?? "" : text() }
            held(log, written, isWhole: output === file, "torpord: ", "\n")
        }
        held(journal.log(), { Self.messages(journal) }, isWhole: false, "", " ")
    }

    /// - Parameters:
    ///   - written: what has been written; if `isWhole`, since the beginning, otherwise since the last call.
    ///   - prefix: what is before each entry, and `end` what is behind it.
    private func held(
        _ log: DaemonLog,
        _ written: () -> String,
        isWhole: Bool,
        _ prefix: String,
        _ end: String
    ) {
        func lines(_ lines: [String]) -> String { lines.map { prefix + $0 + end }.joined() }
        var during: [String] = []
        log.holdingBack {
            log.info("one")
            log.holdingBack { log.info("two") }
            during.append(written())
            log.warning("three")
            during.append(written())
            log.info("four")
            during.append(written())
        }
        let all = lines(["one", "two", "three"])
        #expect(during == ["", all, isWhole ? all : ""])
        #expect(written() == (isWhole ? all : "") + lines(["four"]))
        log.info("five")
        #expect(written() == (isWhole ? all + lines(["four"]) : "") + lines(["five"]))
    }

    private static func messages(_ journal: Journal) -> String {
        var messages = ""
        while let entry = journal.entry {
            messages += entry.split(separator: "\n").first.map { $0.dropFirst("MESSAGE=".count) + " " } ?? ""
        }
        return messages
    }

    @Test("never waits for a pipe that nobody reads")
    func pipe() throws {
        let (read, write) = try Descriptor.pipe()
        let log = DaemonLog(level: .info, descriptor: write.raw, stream: nil)
        for number in 0..<100_000 { log.info("\(number)") }
        let some = try #require(try Descriptor.read(read.raw, maximum: 1 << 20))
        #expect(String(decoding: some, as: UTF8.self).hasPrefix("torpord: 0\ntorpord: 1\n"))
    }

    @Test("has room for so many problems of one kind of an app in a time, which do not hide those of another")
    func roomForProblems() throws {
        let journal = try Journal()
        let shell = try FakeShell("web", "db")
        let recorder = Recorder(
            shell.engine,
            journal.log(),
            EventLog(),
            keepEvent: { _ in },
            keepNumber: { _ in }
        )
        func logged(_ app: String, _ kind: EventKind, _ text: String) -> String? {
            recorder.note(shell.app(app), kind, text: text, level: .warning)
            return journal.entry
        }
        for number in 0..<LogRoom.entries {
            #expect(logged("web", .transfer, "has failed")?.hasPrefix("MESSAGE=web has failed\n") == true, "\(number)")
        }
        let last = try #require(logged("web", .transfer, "has failed"))
        #expect(last.contains("so many problems of the kind transfer") && last.contains("torpor history web"))
        #expect(logged("web", .transfer, "has failed") == nil)
        #expect(recorder.events.records(apps: ["web"], since: nil).count == Int(LogRoom.entries) + 2)
        #expect(logged("web", .ended, "was ended")?.hasPrefix("MESSAGE=web was ended\n") == true)
        #expect(logged("db", .transfer, "has failed")?.hasPrefix("MESSAGE=db has failed\n") == true)
    }

    @Test("has room for so many entries of an app in a time, and says once that it has no more")
    func room() {
        var room = LogRoom()
        let count = Int(LogRoom.entries)
        let start = Duration.seconds(1000)
        let answers = (0..<count + 5).map { _ in room.take(now: start) }
        #expect(answers.prefix(count).allSatisfy { $0 == .granted })
        #expect(answers[count] == .last)
        #expect(answers.suffix(4).allSatisfy { $0 == .none })
        #expect(room.take(now: start + LogRoom.window - .seconds(1)) == .none)
        #expect(room.take(now: start + LogRoom.window) == .granted)
    }
}
