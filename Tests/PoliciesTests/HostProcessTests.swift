// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

/// What a policy that means no harm gets and gives.
struct HostProcessTests {
    @Test func aPolicySaysWhatItIsAndHowItIsConfined() throws {
        let host = try Hosts.start(try Libraries.path("echo.c"))
        let description = host.description
        #expect(description.name == "echo" && description.version == "1.2.3")
        #expect(description.summary == "Says what it was given.")
        #expect(description.abi == TORPOR_POLICY_ABI)
        #expect(description.events == 1 << 2 | 1 << 7)
        #expect(description.needs == 1)
        #expect(
            description.options == [
                PolicyOptionDescription(
                    key: "greeting",
                    type: "text",
                    defaultValue: "hello",
                    meaning: "What it says first."
                ),
                PolicyOptionDescription(key: "number", type: "integer", defaultValue: "0", meaning: "Nothing."),
            ]
        )
        #expect(description.confinement == [.files, .systemCalls])
    }

    @Test func anAnswerHasTheAdviceToEachEventInItsOrder() throws {
        let host = try Hosts.start(try Libraries.path("echo.c"))
        let events = [
            Hosts.event(TORPOR_EVENT_STATE, app: 0, from: 1, to: 3, delay: -7),
            Hosts.event(TORPOR_EVENT_PRESSURE, from: 1),
            Hosts.event(TORPOR_EVENT_STATE, app: 2, from: 2, to: 4, delay: .max),
            Hosts.event(TORPOR_EVENT_STATE, app: 99, from: 2, to: 4),
        ]
        for _ in 0..<3 {
            let answer = try host.ask(events, deadline: Hosts.patience)
            #expect(answer.decided == 0b0011)
            #expect(
                answer.advice == [
                    PolicyAdvice(event: 0, kind: 1, app: 0, value: 3, time: -7, reason: "web"),
                    PolicyAdvice(event: 2, kind: 1, app: 2, value: 4, time: .max, reason: "cache"),
                    PolicyAdvice(event: 3, kind: 1, app: 99, value: 4),
                ]
            )
        }
    }

    @Test func theViewIsSharedNotCopied() throws {
        let view = try Hosts.view()
        let host = try Hosts.start(try Libraries.path("echo.c"), view: view)
        let event = Hosts.event(TORPOR_EVENT_STATE, app: 3)
        #expect(try host.ask([event], deadline: Hosts.patience).advice.first?.reason == "")
        view.put(3, name: "late", tags: [])
        #expect(try host.ask([event], deadline: Hosts.patience).advice.first?.reason == "late")
        view.remove(3)
        #expect(try host.ask([event], deadline: Hosts.patience).advice.first?.reason == "")
    }

    @Test func optionsComeAsTheyAreWritten() throws {
        let options = [
            PolicyOption(key: "a", value: .string("ä text")), PolicyOption(key: "b", value: .integer(.min)),
            PolicyOption(key: "c", value: .number(0.5)), PolicyOption(key: "d", value: .boolean(true)),
            PolicyOption(key: "e.0", value: .date("2026-01-01")),
        ]
        let host = try Hosts.start(try Libraries.path("echo.c"), options: options)
        let advice = try host.ask([Hosts.event(TORPOR_EVENT_TIMER)], deadline: Hosts.patience).advice
        let expected =
            "a=ä text/1/0/0;b=\(Int64.min)/2/\(Int64.min)/-9.22337e+18;c=0.5/3/0/0.5;d=true/4/1/0;"
            + "e.0=2026-01-01/5/0/0;"
        #expect(advice[0] == PolicyAdvice(kind: 10, app: .max, value: 3, time: 123_456, reason: expected))
        #expect(advice[1] == PolicyAdvice(kind: 999, app: 0, time: .min, reason: String(repeating: "x", count: 200)))
        #expect(advice[2].reason == "one two \u{FFFD}[31mred \u{FFFD}")
    }

    @Test func wrongOptionsAreRefusedInThePolicysOwnWords() throws {
        let options = [
            PolicyOption(key: "refuse", value: .string("max_activ is no option of it: do you mean max_active?"))
        ]
        let failure = try Hosts.failure(try Libraries.path("echo.c"), options: options)
        #expect(failure == .refused("max_activ is no option of it: do you mean max_active?"))
        let silent = try Hosts.failure(
            try Libraries.path("echo.c"),
            options: [PolicyOption(key: "refuse", value: .string(""))]
        )
        #expect("\(silent)".hasSuffix(" does not accept its options, and does not say why"))
    }

    @Test func optionsThatDoNotFitAreRefusedBeforeAnythingIsStarted() throws {
        let path = try Libraries.path("echo.c")
        let many = (0..<1025).map { PolicyOption(key: "\($0)", value: .integer(0)) }
        #expect(
            "\(try Hosts.failure(path, options: many))".contains("do not fit into 32 KiB: use at most 1024 of them")
        )
        let long = PolicyOption(key: "text", value: .string(String(repeating: "x", count: 40000)))
        #expect("\(try Hosts.failure(path, options: [long]))".contains("do not fit into 32 KiB"))
        let nul = PolicyOption(key: "text", value: .string("a\0b"))
        #expect("\(try Hosts.failure(path, options: [nul]))".contains("option text has a NUL in it"))
        // Just as many as there may be are taken.
        let host = try Hosts.start(path, options: Array(many.prefix(500)))
        #expect(try host.ask([Hosts.event(TORPOR_EVENT_STATE, app: 0)], deadline: Hosts.patience).advice.count == 1)
    }

    @Test func thePolicyEndsInItsOwnWayWhenNobodyAsksAnyMore() throws {
        let host = try Hosts.start(try Libraries.path("echo.c"))
        let pid = host.pid
        host.close()
        #expect(Hosts.isGone(pid))
        #expect(try Hosts.failure(host) == .ended(.exited(0), lastLine: "farewell"))
    }

    @Test func nothingIsLeftOfAHostThatIsForgotten() throws {
        var host: HostProcess? = try Hosts.start(try Libraries.path("echo.c"))
        let pid = try #require(host?.pid)
        host = nil
        #expect(Hosts.isGone(pid))
    }

    @Test func aProgramThatIsNotThereIsNamed() throws {
        let failure = try #require(throws: PolicyFailure.self) {
            _ = try Hosts.start(try Libraries.path("echo.c")) { $0.program = "/nowhere/torpor-policy-host" }
        }
        #expect(failure == .notStarted(program: "/nowhere/torpor-policy-host", .noSuchFileOrDirectory))
        #expect("\(failure)".contains("/nowhere/torpor-policy-host"))
    }

    @Test func startedByHandItSaysWhoStartsIt() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Hosts.program)
        let output = Pipe()
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 2)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(text.hasSuffix("it is started by torpord and by torpor policy\n"))
    }

    @Test func whatALibraryNeedsIsFoundBesideItAndInFoldersThatItNames() throws {
        let folder = try Libraries.makeFolder("dependent")
        try File.makeDirectory(folder + "/inner")
        let include = ["-I", Libraries.root + "Sources/TorporPolicyABI/include", "-fPIC", "-shared"]
        for (place, runpath) in [("", "$ORIGIN"), ("/inner", "/nowhere:${ORIGIN}/inner")] {
            let dependency = folder + place + "/libdependency.so"
            try Libraries.compile("gcc", include + [Libraries.sources + "dependency.c", "-o", dependency])
            let path = folder + "/libdependent\(place.count).so"
            try Libraries.compile(
                "gcc",
                include + [Libraries.sources + "dependent.c", "-o", path, "-L", folder + place, "-ldependency"]
                    + ["-Wl,-rpath,\(runpath)"]
            )
            let host = try Hosts.start(path)
            let answer = try host.ask([Hosts.event(TORPOR_EVENT_STATE, app: 1)], deadline: Hosts.patience)
            #expect(answer.advice.first?.reason == "beside it")
            try File.remove(dependency)
            #expect(
                "\(try Hosts.failure(path))".hasSuffix(
                    "; the libraries that it needs must lie beside it, in a folder of its RUNPATH, or in /usr/lib"
                )
            )
        }
    }
}
