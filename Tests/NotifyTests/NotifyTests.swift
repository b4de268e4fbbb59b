// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Notify

@Suite struct NotifyMessageTests {
    private func parse(_ text: String) -> NotifyMessage { NotifyMessage(parsing: Array(text.utf8)) }

    @Test("every field of the protocol is read, in order")
    func everyField() {
        let message = parse(
            """
            READY=1
            RELOADING=1
            MONOTONIC_USEC=123456789
            STOPPING=1
            STATUS=Serving 3 of 4 = fine
            ERRNO=2
            BUSERROR=org.example.Broken
            EXIT_STATUS=7
            MAINPID=4711
            WATCHDOG=1
            WATCHDOG=trigger
            WATCHDOG_USEC=20000000
            EXTEND_TIMEOUT_USEC=5000000
            X_TORPOR_TASK_BEGIN=upload
            X_TORPOR_TASK_END=upload
            X_TORPOR_SNAPSHOT=1
            X_TORPOR_DONE=didEnterBackground
            FDSTORE=1
            FDSTOREREMOVE=1
            FDNAME=my socket
            FDPOLL=0
            BARRIER=1
            X_OTHER=kept
            """
        )
        #expect(
            message.fields == [
                .ready, .reloading, .monotonicUsec(123_456_789), .stopping, .status("Serving 3 of 4 = fine"),
                .errno(2), .busError("org.example.Broken"), .exitStatus(7), .mainPID(4711), .watchdogPing,
                .watchdogTrigger, .watchdogUsec(20_000_000), .extendTimeoutUsec(5_000_000), .taskBegin("upload"),
                .taskEnd("upload"), .showsNew, .done("didEnterBackground"), .fdStore, .fdStoreRemove,
                .fdName("my socket"),
                .fdPoll(false), .barrier, .unknown(key: "X_OTHER", value: "kept"),
            ]
        )
        #expect(message.warnings.isEmpty)
        #expect(message.ready && message.stopping && message.barrier && !message.fdPoll)
        #expect(message.mainPID == 4711 && message.watchdogUsec == 20_000_000 && message.fdName == "my socket")
    }

    @Test(
        "a value that means nothing is a sentence, and the rest of the datagram counts",
        arguments: [
            "READY=0", "READY=yes", "STOPPING=", "MAINPID=0", "MAINPID=-1", "MAINPID=99999999999999999999",
            "MAINPID=12a", "WATCHDOG=maybe", "WATCHDOG_USEC=1s", "EXTEND_TIMEOUT_USEC=+5", "ERRNO=-1",
            "EXIT_STATUS=256", "FDNAME=a:b", "FDNAME=\u{e4}", "X_TORPOR_DONE=", "X_TORPOR_TASK_BEGIN=a\tb",
            "X_TORPOR_TASK=a", "X_TORPOR_TASK_BEGIN=\(String(repeating: "a", count: 129))", "no equals sign", "=value",
            "FDPOLL=2", "STATUS=a\u{0}b",
        ]
    )
    func nonsense(line: String) {
        let message = parse("\(line)\nSTATUS=still here")
        #expect(message.fields == [.status("still here")])
        #expect(message.warnings.count == 1)
    }

    @Test(
        "a misspelt key is named with the one that is meant",
        arguments: [
            ("Ready=1", "READY"), ("REDY=1", "READY"), ("RAEDY=1", "READY"), ("READYY=1", "READY"),
            ("READY =1", "READY"), ("watchdog=1", "WATCHDOG"), ("WATCHDOG-USEC=1", "WATCHDOG_USEC"),
        ]
    )
    func misspelt(line: String, meant: String) {
        let message = parse(line)
        #expect(message.fields.isEmpty && message.warnings.count == 1)
        #expect(message.warnings.first?.hasSuffix(" means nothing: did you mean \(meant)?") == true)
    }

    @Test("a key that others may have, and systemd's own, is no misspelling")
    func others() {
        let keys = ["INVOCATION_ID", "NOTIFYACCESS", "RESTART_RESET", "A", "X_SYSTEMD_UNIT_ACTIVE", "MAINPIDFD"]
        for key in keys {
            #expect(parse(key + "=1") == NotifyMessage(fields: [.unknown(key: key, value: "1")]), "\(key)")
        }
    }

    @Test("bytes that are no text, terminators and empty lines do no harm")
    func oddBytes() {
        #expect(NotifyMessage(parsing: Array("READY=1\n\0".utf8)).fields.contains(.ready))
        #expect(parse("\n\nREADY=1\n\n").fields == [.ready])
        #expect(parse("").fields.isEmpty)
        let message = NotifyMessage(parsing: Array("STATUS=".utf8) + [0xff, 0xfe] + Array("\nREADY=1".utf8))
        #expect(message.fields == [.ready] && message.warnings.count == 1)
        #expect(parse("STATUS=").status == "")
    }

    @Test("what is long is cut, and warnings are bounded")
    func bounds() {
        let long = parse("STATUS=" + String(repeating: "x", count: 60_000))
        #expect(long.status?.utf8.count == NotifyMessage.maximumText && long.warnings.count == 1)
        let many = parse(String(repeating: "A=b\n", count: 10_000))
        #expect(many.fields.count == NotifyMessage.maximumFields)
        #expect(parse(String(repeating: "junk\n", count: 1_000)).warnings.count <= 17)
        #expect(NotifyMessage(parsing: [UInt8](repeating: 65, count: 200_000)).warnings.count <= 17)
        // A warning never carries control characters on.
        #expect(!parse("READY=\u{1b}[31m").warnings[0].utf8.contains(0x1b))
    }

    @Test("of a key that comes twice the first counts")
    func first() {
        #expect(parse("STATUS=a\nSTATUS=b").status == "a")
    }

    @Test("5,000 random datagrams are read without a trap")
    func fuzz() {
        var random = Seeded(state: 0x5eed)
        let words = [
            "READY", "WATCHDOG", "MAINPID", "STATUS", "FDNAME", "FDSTORE", "=", "=1", "\n", "\0",
            "18446744073709551616",
            "X_TORPOR_DONE", "-", "trigger", "\u{1F600}", "BARRIER=1", ":",
        ]
        for _ in 0..<5_000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                if Bool.random(using: &random) {
                    bytes += words.randomElement(using: &random)!.utf8
                } else {
                    for _ in 0..<Int.random(in: 0...12, using: &random) {
                        bytes.append(.random(in: 0...255, using: &random))
                    }
                }
            }
            let message = NotifyMessage(parsing: bytes)
            #expect(message.fields.count + message.warnings.count <= bytes.count + 1)
            if let name = message.fdName { #expect(FDName.isValid(name)) }
        }
    }
}

/// splitmix64, so that a failure can be repeated.
struct Seeded: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
