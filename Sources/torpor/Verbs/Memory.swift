// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Linux
import TorporAPI
import Varlink

struct MemoryVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "memory",
        abstract: "Shows who has how much memory, and who would go next if it were short, and why.",
        discussion: """
            OWN is an app's part of the memory; what it shares with others counts in part, and in full in MEM of \
            ‘torpor list’. NEXT numbers those that would be ended, the first one first, or says why one would not be. ‘torpor memory \
            rehearse’ shows every step that would be taken before and between.
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
        abstract: "Shows, one after the other, the steps that would be taken if memory were short; takes none of them.",
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
