// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct PolicyReload: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Reloads a policy's library.",
        discussion: """
            Replaces the policy's process by one with the library that is on disk now, even if the policy was refused \
            or is quarantined. No app and no other policy is touched. The policy forgets what it remembered.
            """
    )
    .examples(
        "torpor policy reload mobile"
    )

    @Argument(help: "The policy's name in the configuration.")
    package var name: String
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let reply = try Manager(options).call(.reloadPolicy(name: name))
        let policy = try Manager.read { () throws(FieldError) in
            try PolicyStatus(json: Fields(reply)["policy"] ?? .null)
        }
        if options.json { Output.document(policy.json) }
        guard policy.state == "ready" else {
            let reason = policy.lastFailure ?? "torpord does not say why"
            throw Failure(
                status: .failed,
                message: Terminal.harmless("the policy \(name) is \(policy.state) and is not asked: \(reason)")
            )
        }
        guard !options.json else { return }
        let place = policy.pid.map { "in process \($0)" } ?? "in torpord's process"
        let what = [policy.version, policy.summary].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: ", ")
        Output.page(Terminal.harmless("\(name): loaded \(place)\(what.isEmpty ? "" : ": \(what)")") + "\n")
    }
}
