// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Testing

@Suite("The help of torpor") struct HelpTests {
    @Test("of each verb has examples of it; CommandTests carries them out")
    func examples() {
        for verb in ManualPageTests.verbs where !["ls", "kill"].contains(verb) {
            let parts = ManualPageTests.helps[verb]?.components(separatedBy: "\nExamples:\n") ?? []
            guard parts.count == 2 else {
                Issue.record("torpor \(verb) --help has no examples")
                continue
            }
            let examples = parts[1].components(separatedBy: "\n\n")[0].split(separator: "\n").map(String.init)
            #expect(examples.contains { $0.contains("torpor \(verb)") }, "\(verb)")
            for example in examples { #expect(example.count <= 80, "\(example)") }
        }
    }

    @Test("shows defaults as they are written")
    func defaults() throws {
        let all = ManualPageTests.helps.values.joined()
        let defaults = all.matches(of: /default:\s+([^)]*\)?)/).map { String($0.1) }
        #expect(defaults.contains("2s)") && defaults.contains("50ms)"), "\(defaults)")
        #expect(!defaults.contains { $0.contains("(") }, "\(defaults)")
    }

    @Test(
        "Who comes from another supervisor is told what its verbs are called here",
        arguments: [
            ("tail", "torpor logs"), ("reread", "torpor apply --diff"), ("update", "torpor apply"),
            ("monit", "torpor top"), ("shutdown", "SIGTERM"), ("suspnd", "did you mean ‘torpor suspend’?"),
            ("frobnicate", "torpor --help"), ("freeze", "did you mean ‘torpor suspend APP’"),
            ("pause", "did you mean ‘torpor suspend APP’"), ("sleep", "did you mean ‘torpor suspend APP’"),
            ("wake", "did you mean ‘torpor foreground APP’"), ("save", "did you mean ‘torpor app state save FILE’"),
            ("resurrect", "did you mean ‘torpor start APP’"), ("flush", "log_max_size"),
            ("is-active", "did you mean ‘torpor health APP’"), ("version", "did you mean ‘torpor --version’"),
            ("startup", "did you mean ‘systemctl enable torpord’"),
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
        #expect(ManualPageTests.verbs.count { !$0.contains(" ") } > 35)
    }

    @Test("An app where a signal belongs is told the order")
    func signalFirst() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "signal", "web", "HUP"])
        #expect(code == 2 && output.contains("the signal comes first: torpor signal HUP web"), "\(output)")
    }
}
