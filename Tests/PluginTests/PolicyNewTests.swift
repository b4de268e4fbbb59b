// SPDX-License-Identifier: Apache-2.0

import Foundation
import Policies
import Testing
import TorporPolicyABI

@Suite("torpor policy new")
struct PolicyNewTests {
    private let workshop: Workshop

    init() throws { workshop = try Workshop() }

    private func torpor(_ arguments: String...) throws -> Workshop.Run {
        try workshop.run(BuiltProducts.path("torpor"), ["policy", "new"] + arguments)
    }

    @Test("the package that is written builds at once, and its library is a policy", .timeLimit(.minutes(5)))
    func swift() throws {
        let written = try torpor("night-shift")
        #expect(written.status == 0, "\(written.output)")
        #expect(written.output.contains("torpor policy check .build/release/libNightShiftPolicy.so"))
        let built = try workshop.run("swift", ["build", "-c", "release"], in: "night-shift")
        try #require(built.status == 0, "\(built.output)")
        #expect(!built.output.contains("warning:"), "\(built.output)")

        let library = workshop.folder + "/night-shift/.build/release/libNightShiftPolicy.so"
        let bench = try PolicyBench(library: library, options: ["keep.0": "tag:always"])
        #expect(bench.description.name == "night-shift")
        try asks(bench)
        #expect(
            PolicyBench.complaint(library: library, ["kep": "web"])
                == "kep is not an option of this policy: did you mean keep?"
        )
    }

    @Test("with --c it is a policy in C that make builds, in the folder that is named")
    func c() throws {
        let written = try torpor("night_shift", "--c", "some where/policy")
        #expect(written.status == 0, "\(written.output)")
        let built = try workshop.run("make", ["CFLAGS=-O2 -Wall -Wextra -Werror"], in: "some where/policy")
        try #require(built.status == 0, "\(built.output)")

        // The line beside it does the same.
        let lines = try workshop.text("some where/policy/README.md").split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix("    cc ") })
        #expect(try workshop.run("rm", ["libNightShiftPolicy.so"], in: "some where/policy").status == 0)
        let compiled = try workshop.run("sh", ["-c", String(line)], in: "some where/policy")
        try #require(compiled.status == 0, "\(compiled.output)")

        let library = workshop.folder + "/some where/policy/libNightShiftPolicy.so"
        let bench = try PolicyBench(library: library, options: ["keep": "always"])
        #expect(bench.description.name == "night_shift")
        try asks(bench)
        #expect(
            PolicyBench.complaint(library: library, ["kep": "web"])
                == "kep is not an option of this policy: there is keep"
        )
    }

    /// What both do.
    private func asks(_ bench: PolicyBench) throws {
        bench.add("web", .background)
        bench.add("db", .background, tags: ["always"])
        bench.add("task", .background)
        bench.change("task") { $0.tasks = 1 }
        bench.add("deaf", .background)
        bench.change("deaf") { $0.flags |= 1 << 11 }
        // Those whose time was used up before it was loaded, and no other.
        bench.add("late", .background)
        let now = bench.now
        bench.change("late") { $0.grant_ends = now }
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["late → suspended"])
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["web → suspended"])
        #expect(bench.reasons == ["its time in the background is used up"])
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "db") == [])
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "task") == [])
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "deaf") == [])
    }

    @Test("the README names the library, the options and what to put into the configuration", arguments: [false, true])
    func readme(inC: Bool) throws {
        let written = inC ? try torpor("kiosk", "--c") : try torpor("kiosk")
        #expect(written.status == 0, "\(written.output)")
        let readme = try workshop.text("kiosk/README.md")
        #expect(readme.contains("policies = [\"kiosk\"]"))
        #expect(readme.contains("path = \"libKioskPolicy.so\""))
        #expect(readme.contains(inC ? "    make\n" : "    swift build -c release\n"))
    }

    @Test("a machine without Swift is told of --c, and one without make has the compiler's line")
    func missing() throws {
        let torpor = BuiltProducts.path("torpor")
        let written = try workshop.run("env", ["PATH=/nowhere", torpor, "policy", "new", "kiosk"])
        #expect(written.status == 0)
        #expect(written.output.contains("There is no swift on PATH"), "\(written.output)")
        #expect(written.output.contains("  torpor policy new --c kiosk\n"), "\(written.output)")
        let inC = try workshop.run("env", ["PATH=/nowhere", torpor, "policy", "new", "--c", "lobby"])
        #expect(inC.output.contains("  cc -O2 -g -shared -fPIC -I") && !inC.output.contains("make"), "\(inC.output)")
        #expect(inC.output.contains("There is no C compiler on PATH"), "\(inC.output)")
        let compiler = try workshop.run(torpor, ["policy", "new", "--c", "porch"])
        #expect(!compiler.output.contains("no C compiler"), "\(compiler.output)")
    }

    @Test("with --json one document says what was written")
    func json() throws {
        let written = try torpor("kiosk", "--json")
        #expect(written.status == 0, "\(written.output)")
        let document = try JSONSerialization.jsonObject(with: Data(written.output.utf8)) as? [String: Any]
        #expect(document?["directory"] as? String == workshop.folder + "/kiosk")
        #expect(document?["kit"] as? String == Workshop.kit)
        let files = try #require(document?["files"] as? [String])
        #expect(files.count == 3)
        for file in files { #expect(FileManager.default.fileExists(atPath: file), "\(file)") }
    }

    @Test(
        "names that a policy cannot have are refused with a sentence, and nothing is written",
        arguments: ["Kiosk", "1st", "-x", "a b", "a/b", "", "ä", String(repeating: "a", count: 49)]
    )
    func badNames(name: String) throws {
        let written = try torpor("--", name)
        #expect(written.status == 2)
        #expect(
            written.output.hasPrefix("torpor: “\(name)” cannot be a policy's name: use at most 48 characters"),
            "\(written.output)"
        )
        #expect(!workshop.exists(name) || name.isEmpty)
    }

    @Test("a folder that exists is left alone, even one that is a broken link")
    func existing() throws {
        try FileManager.default.createDirectory(atPath: workshop.folder + "/kiosk", withIntermediateDirectories: false)
        let first = try torpor("kiosk")
        #expect(first.status == 2)
        #expect(first.output == "torpor: \(workshop.folder)/kiosk exists: name another folder, or remove it\n")
        #expect(try FileManager.default.contentsOfDirectory(atPath: workshop.folder + "/kiosk").isEmpty)
        try FileManager.default.createSymbolicLink(
            atPath: workshop.folder + "/link",
            withDestinationPath: workshop.folder + "/nowhere"
        )
        #expect(try torpor("kiosk", "link").status == 2)
        #expect(!workshop.exists("nowhere"))
    }

    @Test("a folder that is not the kit is refused; one that is, is what the package depends on")
    func kit() throws {
        let wrong = try torpor("kiosk", "--kit", workshop.folder)
        #expect(wrong.status == 2)
        #expect(wrong.output.hasPrefix("torpor: \(workshop.folder) is not Torpor's policy kit: "))
        #expect(!workshop.exists("kiosk"))

        let copy = workshop.folder + "/a \"kit\""
        #expect(try workshop.run("cp", ["-RL", Workshop.kit, copy]).status == 0)
        let right = try torpor("kiosk", "--kit", "a \"kit\"")
        #expect(right.status == 0, "\(right.output)")
        #expect(try workshop.text("kiosk/Package.swift").contains("path: \"\(workshop.folder)/a \\\"kit\\\"\""))
        let described = try workshop.run("swift", ["package", "describe", "--type", "json"], in: "kiosk")
        #expect(described.status == 0, "\(described.output)")
    }

    @Test("an installed program finds the kit beside it")
    func installed() throws {
        let folder = workshop.folder
        for part in ["bin", "libexec/torpor", "share/torpor"] {
            try FileManager.default.createDirectory(atPath: folder + "/" + part, withIntermediateDirectories: true)
        }
        for (name, place) in [("torpor", "/bin"), ("torpor-verbs", "/libexec/torpor")] {
            #expect(try workshop.run("cp", [BuiltProducts.path(name), "\(folder)\(place)/\(name)"]).status == 0)
        }
        // Without it there is none: nothing above the folder is Torpor's.
        let lost = try workshop.run(folder + "/bin/torpor", ["policy", "new", "kiosk"])
        #expect(lost.status == 1)
        #expect(lost.output.contains("name it with --kit"), "\(lost.output)")
        #expect(try workshop.run("cp", ["-RL", Workshop.kit, folder + "/share/torpor/policy-kit"]).status == 0)
        let found = try workshop.run(folder + "/bin/torpor", ["policy", "new", "kiosk"])
        #expect(found.status == 0, "\(found.output)")
        #expect(try workshop.text("kiosk/Package.swift").contains("\"\(folder)/share/torpor/policy-kit\""))
    }
}
