// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct MemoryVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "memory",
        abstract: "Shows how much memory apps have, and which would be ended next if it were short, and why.",
        discussion: """
            OWN is an app's memory, including its share of the memory that it shares with other processes; MEM of \
            ‘torpor list’ counts shared memory in full. NEXT numbers the apps in the order in which they would be \
            ended, or says why an app would not be. ‘torpor memory rehearse’ also shows the steps before and between.
            """,
        subcommands: [MemoryRehearse.self]
    )
    .examples(
        "torpor memory",
        "torpor memory rehearse"
    )
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let memory = try Self.ask(options)
        guard !options.json else { return Output.document(memory.json) }
        Output.page(MemoryPage(memory).text)
    }

    static func ask(_ options: GlobalOptions) throws -> MemoryStatus {
        let reply = try Manager(options).call(.memory)
        return try Manager.read { () throws(FieldError) in try MemoryStatus(json: reply["memory"] ?? .null) }
    }
}

struct MemoryRehearse: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse",
        abstract: "Shows the steps that torpord would take if memory were short; takes none of them.",
        discussion: "Each step is taken only if those before it did not help."
    )
    .examples(
        "torpor memory rehearse"
    )
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let memory = try MemoryVerb.ask(options)
        guard !options.json else { return Output.document(.array(memory.steps.map(\.json))) }
        Output.page(MemoryPage(memory).rehearsal)
    }
}
