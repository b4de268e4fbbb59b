// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct PolicyList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows the policies in use: their state, what they were asked and what they advised.",
        discussion: """
            A policy decides which apps go to the background, are suspended, or end first when memory is short. \
            Torpor comes with four: server (suspends idle apps), mobile (keeps a few apps in the foreground and \
            suspends the others), schedule (by the calendar) and jetsam (decides which app ends first). To use one, \
            write into the configuration

              [supervisor]
              policies = ["server"]

              [policies.server]
              path = "libServerPolicy.so"
              options = { idle_after = "10min" }

            Policies are listed in the order in which they are asked. PROCESS is the process that a policy runs in, \
            and ASKED the number of questions it has answered. TAKEN advice changed something; REFUSED advice was \
            against the rules, came too late, or came from a policy that changes its mind too often. ‘torpor events’ \
            shows each piece of advice.
            """
    )
    .examples("torpor policy list")
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let policies = try Manager(options).policies()
        guard !options.json else { return Output.document(.array(policies.map(\.json))) }
        guard !policies.isEmpty else {
            Output.page(
                "no policies: only your commands move and suspend apps (‘torpor help policy list’)\n"
            )
            return
        }
        var table = Table(
            ["POLICY", "STATE", "MODE", "PROCESS", "ASKED", "TAKEN", "REFUSED", "FAILED", "MEDIAN", "P99"],
            rightAligned: [3, 4, 5, 6, 7, 8, 9]
        )
        for policy in policies {
            table.append([
                .init(policy.name), .init(policy.state, Self.colour(policy.state)), .init(policy.mode),
                .init(policy.isolation == "none" ? "torpord" : policy.pid.map { "\($0)" } ?? "-"),
                .init("\(policy.questions)"), .init("\(policy.taken)"),
                .init("\(policy.refused + policy.damped + policy.overruled)"), .init("\(policy.failures)"),
                .init(Self.time(policy.medianMicroseconds)), .init(Self.time(policy.p99Microseconds)),
            ])
        }
        var text = table.text
        for policy in policies where policy.lastFailure != nil || policy.state == "waiting" {
            text += "\n\(policy.name): \(Terminal.harmless(policy.lastFailure ?? "it failed"))"
            if let retry = policy.retryMilliseconds {
                text += "; it is loaded again in \(Times.duration(milliseconds: retry))"
            }
            text += "\n"
        }
        Output.page(text)
    }

    package static func colour(_ state: String) -> Terminal.Colour? {
        switch state {
        case "ready": .green
        case "loading", "waiting": .yellow
        default: .red
        }
    }

    private static func time(_ microseconds: Double?) -> String {
        guard let microseconds else { return "-" }
        if microseconds >= 1000 { return "\((microseconds / 100).rounded() / 10) ms" }
        return "\((microseconds * 10).rounded() / 10) us"
    }
}
