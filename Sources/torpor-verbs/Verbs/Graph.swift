// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct GraphVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "graph",
        abstract: "Shows the dependencies between apps.",
        discussion: """
            With APP, shows only these apps, their dependencies and the apps that depend on them. An app is launched \
            when the apps that it requires are ready, and after the apps that its configuration lists in after.
            """
    )
    .examples(
        "torpor graph",
        "torpor graph db",
        "torpor graph --dot | dot -Tsvg >apps.svg"
    )

    @OptionGroup package var apps: AnyAppsArgument

    @Flag(help: "Print the graph as DOT, for Graphviz.")
    package var dot = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard !dot || !options.json else { throw ValidationError("--dot and --json say the same: choose one") }
    }

    package func run() throws {
        let manager = try Manager(options)
        let reply = try manager.call(.graph)
        let nodes = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("apps") { json throws(FieldError) in try GraphNode(json: json) }
        }
        var chosen: Set<String> = []
        if !apps.apps.isEmpty {
            let list = try manager.call(.listOf(apps.apps))["apps"]?.arrayValue ?? []
            chosen = Set(list.compactMap { $0["name"]?.stringValue })
        }
        let page = GraphPage(nodes, chosen: chosen)
        guard !options.json else { return Output.document(.array(page.shown.map(\.json))) }
        if dot { Output.write(page.dot) } else { Output.page(page.text) }
    }
}
