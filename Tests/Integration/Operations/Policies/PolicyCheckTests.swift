// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import Testing
import Varlink

@Suite("torpor policy check") struct PolicyCheckTests {
    /// Few questions, and a deadline that a busy machine keeps.
    private func check(_ library: String, _ arguments: [String]) throws -> (code: Int32, output: String) {
        let common = ["--host", Built.path("torpor-policy-host"), "--questions", "300"]
        return try Spawn.run([Built.path("torpor"), "policy", "check", library] + common + arguments)
    }

    /// A copy in a folder that nobody else can write to.
    private func copy(_ library: String) throws -> String {
        let folder = try Libraries.makeFolder("checked")
        try copyProgram(Built.path(library), to: folder + "/" + library)
        return folder + "/" + library
    }

    @Test(
        "the policies that ship pass all of it",
        arguments: [
            ("Mobile", []), ("Jetsam", []), ("Server", []),
            (
                "Schedule",
                ["--option", #"rules=[{ apps = ["app-1*"], from = "08:00", to = "18:00", state = "active" }]"#]
            ),
        ] as [(String, [String])]
    )
    func shipped(_ name: String, _ options: [String]) throws {
        let (code, output) = try check(try copy("lib\(name)Policy.so"), ["--deadline", "20s"] + options)
        #expect(code == 0, "\(output)")
        let lines = output.split(separator: "\n")
        #expect(lines.count == 23 && lines.allSatisfy { $0.hasPrefix("ok      ") }, "\(output)")
    }

    @Test("what it says is there for programs too")
    func json() throws {
        let (code, output) = try check(try copy("libMobilePolicy.so"), ["--deadline", "20s", "--json"])
        let document = try JSON.parse(output)
        #expect(code == 0 && document["ok"] == true && document["name"] == "mobile" && document["abi"] == 1)
        let checks = try #require(document["checks"]?.arrayValue)
        #expect(checks.allSatisfy { $0["result"] == "ok" } && checks.count == 23, "\(output)")
        #expect(document["measured"]?["questions"] == 300.0)
        #expect((document["measured"]?["memory_after_bytes"]?.doubleValue ?? 0) > 100_000)
        #expect(document["options"]?.arrayValue?.first?["key"] == "max_active")
    }

    /// What a policy does, what it is found by, and what else the check is told.
    static let faults: [(fault: String, finding: String, arguments: [String])] = [
        ("leak", "FAILED  memory: 4000 questions in ", ["--questions", "4000"]),
        ("clock", "FAILED  same answers: two processes answered question ", []),
        ("nonsense", "FAILED  advice: some of ", []),
        ("fragile", "FAILED  view: no apps: asked about state, the policy's process was ended by SIGSEGV", []),
        ("slow", "FAILED  time: with 1000 apps an answer takes ", ["--deadline", "2ms"]),
    ]

    @Test("policies that are not to be relied on are found out", arguments: faults)
    func unreliable(_ fault: String, _ finding: String, _ arguments: [String]) throws {
        let library = try Libraries.path("unreliable.c")
        let (code, output) = try check(library, ["--option", "does=\(fault)"] + arguments)
        #expect(code == 1)
        #expect(output.contains("\n" + finding), "\(output)")
        #expect(output.contains("checks failed: "))
        // What is all right with them is not called a fault.
        #expect(output.contains("\nok      loading: unreliable 1.0, ABI 1, "), "\(output)")
        let failed = output.split(separator: "\n").count { $0.hasPrefix("FAILED") }
        #expect(fault == "fragile" || fault == "slow" || failed == 1, "\(output)")
    }

    @Test("of a slow policy less is tried, and that is said")
    func lame() throws {
        let library = try Libraries.path("unreliable.c")
        // Minutes of questions. The checks have a tenth of their usual time with so short a deadline.
        let arguments = ["--option", "does=lame", "--deadline", "1ms", "--questions", "100000"]
        let (code, output) = try check(library, arguments)
        #expect(code == 1 && output.contains("1 of 23 checks failed: time"), "\(output)")
        for name in ["same answers", "memory"] {
            let line = output.split(separator: "\n").first { $0.hasPrefix("warning \(name): ") }
            #expect(line?.contains(" more were not asked, since the answers took ") == true, "\(output)")
        }
    }

    @Test("each piece of advice that nobody can follow is named")
    func nonsense() throws {
        let (_, output) = try check(try Libraries.path("unreliable.c"), ["--option", "does=nonsense"])
        for sentence in [
            "advice of a kind that does not exist (", "first number 99)", "goal about a place where there is no app (",
            "goal with a state that does not exist (", "first number 17)",
            "goal inactive, which apps only pass through", "grant with a negative time",
            "refuse, which answers the event launch, to the event ",
        ] {
            #expect(output.contains(sentence), "\(sentence)\n\(output)")
        }
    }

    @Test("advice without a reason is a warning, and no fault")
    func mute() throws {
        let (code, output) = try check(
            try Libraries.path("unreliable.c"),
            ["--option", "does=mute", "--deadline", "20s"]
        )
        #expect(code == 0, "\(output)")
        #expect(output.contains("\nwarning advice: goal without a reason: people see it in ‘torpor events’ ("))
    }

    /// What a policy does, and what a person reads of it.
    static let harms: [(harm: String, sentence: String)] = [
        ("segfault", "the policy's process was ended by SIGSEGV"),
        ("abort", "the policy's process was ended by SIGABRT; its last output: it cannot go on"),
        ("exit", "the policy's process exited with status 0"),
        ("loop", "the policy gave no answer within 2 s"),
        ("garbage", "the policy's process broke the protocol: "),
        ("flood", "more advice than torpord takes ("),
        ("close", "the policy's process exited with status 2"),
    ]

    @Test("policies that do harm are found out", arguments: harms)
    func hostile(_ harm: String, _ sentence: String) throws {
        let library = try Libraries.path("hostile.c")
        let (code, output) = try check(library, ["--option", "does=\(harm)", "--questions", "100"])
        #expect(code == 1)
        #expect(output.contains(sentence), "\(output)")
    }

    @Test("what cannot be loaded is told with what to do")
    func unloadable() throws {
        let (code, output) = try check(try Libraries.path("hostile.c"), [])
        #expect(code == 1)
        #expect(
            output.contains("FAILED  loading: it does not know what to do (set its options with --option)\n"),
            "\(output)"
        )
        #expect(output.hasSuffix(".so: 1 of 2 checks failed: loading\n"), "\(output)")
        let gone = try check("/nonexistent/libNothing.so", [])
        #expect(gone.code == 1 && gone.output.contains("FAILED  loading: /nonexistent/libNothing.so is not there\n"))
    }

    @Test("a library that others can write to is checked, and said that torpord will not have it")
    func trust() throws {
        let folder = try Libraries.makeFolder("open")
        let library = folder + "/libunreliable.so"
        try copyProgram(try Libraries.path("unreliable.c"), to: library)
        try File.setMode(library, 0o666)
        let (code, output) = try check(library, ["--deadline", "20s"])
        #expect(code == 0, "\(output)")
        #expect(
            output.hasPrefix(
                "warning trust: torpord would not load it from here: \(library) is not loaded: can be written to by "
                    + "everybody, who could change what is loaded; chmod go-w \(library)\n"
            ),
            "\(output)"
        )
    }

    @Test(
        "what cannot be an option of the command is refused",
        arguments: [["--option", "x"], ["--option", "=x"], ["--questions", "1"], ["--host", "/nonexistent"]]
    )
    func usage(_ arguments: [String]) throws {
        let (code, output) = try check(try Libraries.path("unreliable.c"), arguments)
        #expect(code == 2, "\(output)")
    }

    @Test("options have the type that they have in a configuration, and what is no value there is text")
    func types() throws {
        func loads(_ library: String, _ options: String...) throws -> String {
            let words = options.flatMap { ["--option", $0] }
            let trace = try Traces.write([Traces.header, Traces.round(0)])
            defer { try? File.remove(trace) }
            return try Traces.simulate(trace, Built.path("lib\(library)Policy.so"), words).output
        }
        #expect(try loads("Mobile", "max_active=2", "keep_active=[\"tag:x\", \"b\"]", "suspend=true").contains("0 new"))
        #expect(try loads("Mobile", "max_active=\"2\"").contains("max_active"))
        #expect(try loads("Mobile", "max_active=2.5").hasPrefix("torpor: max_active "))
        #expect(try loads("Mobile", "maxactive=2").contains("max_active"))
        #expect(try loads("Jetsam", "order=size", "bands=[{ name = \"x\", min_priority = 5 }]").contains("0 new"))
        #expect(try loads("Jetsam", "bands=[{ name = \"x\", min_priority = \"5\" }]").contains("bands.0.min_priority"))
    }
}
