import DaemonHarness
import Foundation
import Testing

@Suite("The help of torpor") struct HelpTests {
    @Test("of each verb has examples, whose verbs and options there are")
    func examples() throws {
        let verbs = try ManualPageTests.verbs().map { $0.components(separatedBy: " ")[0] }
        for verb in verbs where verb != "ls" {
            let (_, help) = try Spawn.run([Built.path("torpor"), verb, "--help"])
            let parts = help.components(separatedBy: "\nExamples:\n")
            guard parts.count == 2 else {
                Issue.record("torpor \(verb) --help has no examples")
                continue
            }
            let examples = parts[1].components(separatedBy: "\n\n")[0].split(separator: "\n").map(String.init)
            #expect(examples.contains { $0.contains("torpor \(verb)") }, "\(verb)")
            for example in examples {
                #expect(example.count <= 80, "\(example)")
                try check(example)
            }
        }
    }

    @Test(
        "Who comes from another supervisor is told what its verbs are called here",
        arguments: [
            ("tail", "torpor logs"), ("reread", "torpor apply --diff"), ("update", "torpor apply"),
            ("monit", "torpor top"), ("shutdown", "SIGTERM"), ("suspnd", "did you mean ‘torpor suspend’?"),
            ("frobnicate", "torpor --help"),
        ]
    )
    func habits(verb: String, hint: String) throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), verb])
        #expect(code == 2 && output.hasPrefix("torpor: there is no verb \(verb): "), "\(output)")
        #expect(output.contains(hint) && output.split(separator: "\n").count == 1, "\(output)")
    }

    @Test("of a verb that there is not says so")
    func unknownVerb() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "help", "suspnd"])
        #expect(code == 2 && output == "torpor: there is no verb suspnd: did you mean ‘torpor suspend’?\n")
    }

    @Test("has each verb in one of its groups, which say what they are")
    func groups() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "--help"])
        let heads = ["SEE WHAT APPS DO:", "HAVE APPS DO SOMETHING:", "CONFIGURE:", "FROM WITHIN AN APP:"]
        #expect(code == 0 && heads.allSatisfy { output.contains("\n\($0)\n") } && !output.contains("SUBCOMMANDS"))
        let verbs = try ManualPageTests.verbs()
        #expect(verbs.count > 35 && Set(verbs).count == verbs.count)
    }

    @Test("An app where a signal belongs is told the order")
    func signalFirst() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "signal", "web", "HUP"])
        #expect(code == 2 && output.contains("the signal comes first: torpor signal HUP web"), "\(output)")
    }

    /// Each call of torpor in a line of a shell.
    private func check(_ line: String) throws {
        for call in line.components(separatedBy: "torpor ").dropFirst() {
            let end = call.firstIndex { "|;&>".contains($0) } ?? call.endIndex
            let words = call[..<end].components(separatedBy: " -- ")[0].split(separator: " ").map(String.init)
            let groups = ManualPageTests.groups
            let isGroup = groups.contains(words[0]) && words.count > 1 && !words[1].hasPrefix("-")
            let verb = isGroup ? words[0] + " " + words[1] : words[0]
            let options = try ManualPageTests.options(verb)
            for word in words where word.hasPrefix("-") {
                #expect(options.contains(word), "\(word) in: torpor \(call)")
            }
        }
    }
}
