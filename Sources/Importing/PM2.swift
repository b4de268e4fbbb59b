// SPDX-License-Identifier: Apache-2.0

/// Imports an ecosystem file of PM2, in JSON (as written by hand) or YAML.
enum PM2 {
    static func read(_ text: String, _ tree: SourceTree, into result: inout ImportedConfiguration) throws(ImportError) {
        let isYAML = result.source.hasSuffix(".yml") || result.source.hasSuffix(".yaml")
        let root: DataNode
        do throws(ImportError) {
            root = isYAML ? try YAML.parse(text) : try LooseJSON.parse(text)
        } catch {
            if Self.isModule(text) { throw Importer.program(result.source) }
            throw ImportError("\(result.source): \(error.description)")
        }
        let apps: [DataNode]
        if let list = root["apps"]?.list ?? root["pm2"]?.list ?? root.list {
            apps = PM2Processes.merged(list, &result)
        } else if let one = root["apps"] ?? root["pm2"], one.members != nil {
            apps = [one]
        } else if PM2App.script(root) != nil || PM2Processes.isProcess(root) {
            apps = PM2Processes.merged([root], &result)
        } else if Self.isModule(text) {
            throw Importer.program(result.source)
        } else {
            throw ImportError("\(result.source): there are no apps in it")
        }
        for (key, node) in root.members ?? [] where root["apps"] != nil && key != "apps" {
            result.remark(
                key == "deploy" ? "deploy is not translated: it is about other machines." : "\(key) is not translated.",
                line: node.line
            )
        }
        for (index, node) in apps.enumerated() {
            let app = PM2Processes.app(node)
            let name = app["name"]?.text ?? PM2App.script(app).map(Self.name) ?? "app-\(index + 1)"
            var program = ImportedProgram(name, line: node.line)
            if app.members == nil {
                program.cannot("it is \(node.kind), not a table")
            } else {
                let path = PM2Processes.path(node) ?? tree.variables["PATH"] ?? ""
                PM2App(node: app, folder: SourceTree.folder(result.source), tree: tree, path: path).read(into: &program)
                PM2Processes.remark(on: node, &program)
            }
            try result.append(program)
        }
        general(&result)
    }

    /// Whether the text is JavaScript, whatever the file's name.
    private static func isModule(_ text: String) -> Bool {
        text.contains("module.exports") || text.contains("export default")
    }

    /// Adds remarks about differences from PM2 that concern all apps.
    private static func general(_ result: inout ImportedConfiguration) {
        let unbound = result.programs.filter { $0.isTranslated && $0["restart"] == .string("always") }.filter {
            guard case .table(let backoff)? = $0["restart_backoff"] else { return false }
            return backoff["limit"] == .integer(Int64(PM2App.noLimit))
        }
        guard !unbound.isEmpty else { return }
        result.remark(
            "Without max_restarts Torpor gives up no app: it keeps restarting one that keeps exiting, in the end every "
                + "15 s, or after its restart_delay. PM2 gives up those that exit sixteen times in the first sixteen "
                + "seconds after their start."
        )
    }

    private static func name(_ script: String) -> String {
        let last = SourceTree.lastPart(script)
        return last.lastIndex(of: ".").map { String(last[..<$0]) } ?? last
    }
}
