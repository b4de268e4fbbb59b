// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux

/// The configuration, which the seed chooses.
extension Simulation {
    func configure() throws {
        for index in 0..<(2 + random(4)) {
            let app = AppModel("app\(index)", AppModel.Kind.allCases[random(3)])
            apps.append(app)
            app.settings = anySettings(of: app)
        }
        try writeConfiguration()
    }

    func anySettings(of app: AppModel) -> [String] {
        var lines = ["exec = [\"/bin/true\"]"]
        switch app.kind {
        case .unaware: break
        case .notify: lines.append("ready = \"notify\"")
        case .delegate: lines += ["ready = \"delegate\"", "topics = { \"*\" = \"all\" }"]
        }
        lines.append("launch = \"\(["foreground", "background", "on-demand"][random(3)])\"")
        lines.append("restart = \"\(["always", "on-failure", "never"][random(3)])\"")
        if let index = apps.firstIndex(where: { $0 === app }), index > 0, happens(1, of: 3) {
            let needed = apps[random(index)]
            if needed.isConfigured { lines.append(Self.requires(needed.name)) }
        }
        if happens(1, of: 4) { lines.append("before_start = [[\"/bin/true\"]]") }
        if happens(1, of: 4) { lines.append("after_stop = [[\"/bin/true\"]]") }
        if app.kind == .notify, happens(1, of: 4) { lines.append("watchdog = \"10s\"") }
        if happens(1, of: 3) { lines.append("log_max_size = \"4KiB\"") }
        if happens(1, of: 3) { lines.append("grace = \"\(1 + random(3))s\"") }
        if happens(1, of: 4) { lines.append("timers = [{ every = \"\(20 + random(100))s\" }]") }
        if happens(1, of: 5) { lines.append("sockets = [{ stream = \"\(root)/\(app.name).sock\" }]") }
        return lines
    }

    /// Writes the configuration as the apps have it now.
    func writeConfiguration() throws {
        var text = """
            [supervisor]
            runtime_directory = "\(root)/run"
            state_directory = "\(root)/state"
            log_directory = "\(root)/log"
            log_level = "debug"

            """
        let names = apps.filter(\.isConfigured).map(\.name)
        for app in apps where app.isConfigured {
            text += "\n[apps.\(app.name)]\n"
            for line in app.settings {
                // An app that left cannot be required.
                if line.hasPrefix("requires"), !names.contains(where: { line == Self.requires($0) }) { continue }
                text += line + "\n"
            }
        }
        do {
            try File.write(root + "/torpor.toml", text)
        } catch {
            throw Violation("cannot write the configuration: \(error)")
        }
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let namesRoot = line.indices.contains { line[$0...].starts(with: root.utf8) }
            if !namesRoot { sim_trace(String(Substring(line))) }
        }
    }

    private static func requires(_ name: String) -> String { "requires = [\"\(name)\"]" }
}
