// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI
import Varlink

@Suite struct JSONWriterTests {
    private func text(_ write: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        write(&writer)
        return writer.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    @Test("writes numbers as Swift describes them")
    func numbers() {
        var random = Random(state: 7)
        var values: [Double] = [0, -0.0, 1, 0.1, 0.25, 1e6, 1e-4, 9.9e-5, 0.000412, 123.0, 1.0 / 3, 1.7e308]
        values += [0.000_100_000_001, 999_999.999_999_999, 99_999.999_999_999_9, .leastNonzeroMagnitude]
        values.append(4503.599_627_370_496)
        for _ in 0..<20_000 {
            let micro = Double(Int.random(in: 0..<1_000_000_000_000, using: &random))
            values += [micro / 1e6, micro / 1e9, micro / 1e12, micro / 7, Double.random(in: 0..<1e6, using: &random)]
            values.append((micro / 1e6).nextUp)
        }
        for value in values {
            for value in [value, -value] {
                let written = text { $0.append(value) }
                guard written == value.description else {
                    Issue.record("\(value) is written as \(written)")
                    return
                }
            }
        }
        for value: Int64 in [0, 9, 10, 11, 99, 100, -1, -10, .max, .min, 1_000_000_007] {
            #expect(text { $0.append(value) } == String(value))
        }
    }

    @Test("finds each byte that needs an escape, wherever it is in a string")
    func escapes() throws {
        for special in ["\"", "\\", "\u{0}", "\u{1f}", "\u{7f}", "\u{9b}", "\u{202e}", "é", "~", " ", "😀"] {
            for before in 0..<20 {
                for after in [0, 1, 7, 8, 9] {
                    let string = String(repeating: "a", count: before) + special + String(repeating: "~", count: after)
                    let written = text { $0.append(string) }
                    #expect(try JSON.parse(written) == .string(string))
                    #expect(written.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f })
                }
            }
        }
    }

    @Test("keeps what was written as its memory grows, and what is left when the first bytes are removed")
    func growing() {
        var writer = JSONWriter()
        let all = (0..<10_000).map { UInt8(truncatingIfNeeded: $0) }
        for byte in all { writer.append(byte) }
        #expect(writer.withBytes { $0.elementsEqual(all) })
        writer.removeFirst(9_990)
        #expect(writer.withBytes { $0.elementsEqual(all.suffix(10)) } && writer.count == 10)
        writer.clear()
        #expect(writer.withBytes { $0.isEmpty })
        writer.append(1 as UInt8)
        #expect(writer.withBytes { $0.elementsEqual([1]) })
    }

    @Test("gives a long text away while it is written, whatever its reader takes")
    func outlet() {
        for most in [0, 1, 1_000, 65_536, .max] {
            var taken: [UInt8] = []
            var writer = JSONWriter()
            writer.outlet = { bytes in
                let part = bytes.prefix(most)
                taken += part
                return part.count
            }
            let all = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            for byte in all { writer.append(byte) }
            writer.outlet = nil
            #expect(writer.withBytes { taken + $0 } == all)
            #expect(most < 65_536 || taken.count > 800_000)
        }
    }

    @Test("separates members wherever the text before them was given away")
    func outletBetweenMembers() {
        func write(_ writer: inout JSONWriter) {
            writer.appendObject { object in
                for number in 0..<6_000 {
                    object.add("number", Int64(number))
                    object.add("names", ["a", "b"])
                    object.add("inner") { $0.add("text", String(repeating: "x", count: number % 40)) }
                }
            }
        }
        var whole = JSONWriter()
        write(&whole)
        for start in 0..<24 {
            var taken: [UInt8] = []
            var writer = JSONWriter()
            writer.outlet = { bytes in
                taken += bytes
                return bytes.count
            }
            // Each beginning has the memory full at another byte of a member.
            for _ in 0..<start { writer.append(UInt8(ascii: " ")) }
            write(&writer)
            let isSame = writer.withBytes { rest in
                whole.withBytes { all in (taken + rest).dropFirst(start).elementsEqual(all) }
            }
            #expect(isSame, "after \(start) bytes")
            #expect(taken.count > JSONWriter.portion)
        }
    }

    @Test("fields are found in any order, and again")
    func fields() throws {
        let object: JSONObject = ["a": "1", "b": .null, "c": 3, "d": true]
        let fields = Fields(object)
        #expect(try fields.string("a") == "1" && fields.optionalString("b") == nil && fields.int("c") == 3)
        #expect(try fields.bool("d") && fields.int("c") == 3 && fields.string("a") == "1" && fields.string("a") == "1")
        #expect(fields["e"] == nil && fields["d"] == true)
    }

    @Test("a list is the same as text and as a value")
    func list() throws {
        var full = AppSummary(
            name: "ä\"b\u{202e}",
            state: "active",
            transition: "launching",
            goal: "active",
            pid: 7,
            incarnation: 2,
            uptime: 12.345_678_9,
            restarts: 3,
            failed: true,
            memoryBytes: 1 << 40,
            cpuSeconds: 0.25,
            status: "a\nb",
            lastExit: LastExit(reason: "signal", code: nil, signal: "SIGKILL", at: 9),
            holds: ["task x", "hold"],
            nextRestartMilliseconds: 5
        )
        (full.title, full.titles, full.icon) = ("T", ["de": "D", "a": "A"], "/i.svg")
        (full.tags, full.categories, full.icons) = (["x"], ["y", "z"], ["16": "/16.png"])
        (full.scene, full.template, full.badge, full.owner) = ("s", "t", 4, "here")
        full.scenesInside = SceneCount(sessions: 2, live: 1)
        var exited = AppSummary(name: "b", state: "not-running", goal: "not-running")
        exited.lastExit = LastExit(reason: "exit-success", code: 0, at: 1)
        let templates = [SceneTemplateInfo(name: "t", live: 1, maxLive: nil, sessions: 2, maxSessions: 3)]
        for apps in [[], [exited], [full, exited, full]] {
            let written = text { Replies.append(list: apps, templates: templates, to: &$0) }
            #expect(try JSON.parse(written) == Replies.list(apps, templates: templates))
            #expect(written == Replies.list(apps, templates: templates).description)
        }
    }

    @Test("an app of a list is written in these bytes")
    func bytes() {
        let none = AppSummary(name: "b", state: "not-running", goal: "not-running")
        #expect(
            text { none.append(to: &$0) } == """
                {"name":"b","state":"not-running","transition":null,"goal":"not-running","pid":null,"incarnation":null,\
                "uptime_s":null,"restarts":0,"failed":false,"memory_bytes":null,"cpu_s":null,"status":null,\
                "last_exit":null,"holds":[],"next_restart_ms":null,"stranded":false,"done":false,"working":false,\
                "socket_trouble":null,"unhealthy":null,"held_back":null,"tags":[],"title":null,"titles":{},"summary":null,"summaries":{},\
                "icon":null,"icons":{},"categories":[],"language":null,"template":null,"scene":null,"picture_at":null,\
                "badge":null,"owner":null,"owned_ms":null,"scenes":null,"sandboxed":false}
                """
        )
        let all = Self.everything
        #expect(
            text { all.append(to: &$0) } == """
                {"name":"a@1","state":"active","transition":"launching","goal":"background","pid":7,"incarnation":2,\
                "uptime_s":12.5,"restarts":3,"failed":true,"memory_bytes":1099511627776,"cpu_s":0.25,"status":"s\\n",\
                "last_exit":{"reason":"signal","code":null,"signal":"SIGKILL","at":9},"holds":["h","i"],\
                "next_restart_ms":5,"stranded":true,"done":true,"working":true,"socket_trouble":"t",\
                "unhealthy":"u","held_back":"v","tags":["w"],"title":"x","titles":{"a":"A","de":"D"},"summary":"y","summaries":{"fr":"F"},"icon":"/i",\
                "icons":{"16":"/16"},"categories":["c"],"language":"l","template":"m","scene":"n","picture_at":10,\
                "badge":11,"owner":"here","owned_ms":12,"scenes":{"sessions":13,"live":14},"sandboxed":true}
                """
        )
        // A copy has all of it.
        #expect(AppSummary(of: all) == all && AppSummary(of: none) == none)
    }

    private static var everything: AppSummary {
        var app = AppSummary(
            name: "a@1",
            state: "active",
            transition: "launching",
            goal: "background",
            pid: 7,
            incarnation: 2,
            uptime: 12.5,
            restarts: 3,
            failed: true,
            memoryBytes: 1 << 40,
            cpuSeconds: 0.25,
            status: "s\n",
            lastExit: LastExit(reason: "signal", signal: "SIGKILL", at: 9),
            holds: ["h", "i"],
            nextRestartMilliseconds: 5
        )
        (app.stranded, app.done, app.working, app.isSandboxed) = (true, true, true, true)
        (app.socketTrouble, app.unhealthy, app.heldBack) = ("t", "u", "v")
        (app.title, app.titles, app.summary, app.summaries) = ("x", ["de": "D", "a": "A"], "y", ["fr": "F"])
        (app.icon, app.icons, app.categories, app.language) = ("/i", ["16": "/16"], ["c"], "l")
        (app.tags, app.template, app.scene, app.pictureAt) = (["w"], "m", "n", 10)
        (app.badge, app.owner, app.ownedMilliseconds) = (11, "here", 12)
        app.scenesInside = SceneCount(sessions: 13, live: 14)
        return app
    }

    @Test("a report is written as its JSON value is")
    func report() throws {
        var report = Report(app: "ä\"b", incarnation: 2, at: 5, reason: "watchdog", state: "active")
        #expect(report.jsonText == report.json.description)
        (report.pid, report.code, report.text, report.exitCode) = (7, 0x8bad_f00d, "a\nb", 3)
        (report.signal, report.coreDumped, report.stage, report.errno) = ("SIGKILL", true, "exec", 2)
        (report.deadline, report.due, report.deadlineMilliseconds) = ("launch", "ready", 1)
        (report.extendedMilliseconds, report.usedMilliseconds, report.lateMilliseconds) = (2, 3, 4)
        (report.answered, report.wallSeconds, report.cpuSeconds) = (true, 1.5, 1.0 / 3)
        (report.transition, report.status, report.memoryBytes, report.maxMemoryBytes) = ("launching", "s", 1, 2)
        report.tasks = ["t", "u"]
        report.locks = [LockInfo(file: "/f", kind: "flock", holder: 2, waiter: 3)]
        report.log = [LogLine(at: 1, text: "t"), LogLine(at: 2, text: "u")]
        report.journal = JournalPlace(identifier: "web", units: ["torpor-apps.scope"], user: 1000)
        report.threads = [ThreadStack(tid: 1, name: "n", state: "S", stack: ["a"])]
        report.launch = LaunchTimes()
        report.launch?.executed = 1.25
        report.timeline = [
            TimelineEntry(after: 0.5, kind: "launch", name: "exec"), TimelineEntry(after: nil, kind: "gap", name: "3"),
        ]
        #expect(report.jsonText == report.json.description)
        #expect(try Report(json: JSON.parse(report.jsonText)) == report)
    }
}
