// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation

/// The fifty apps that live through the chaos.
struct Fleet {
    /// What sort of program an app is, as far as the test treats it in its own way.
    enum Sort {
        /// Runs until it is ended.
        case lasting
        /// Ends by itself again and again, and is restarted.
        case mortal
        /// Does its work and is done.
        case oneshot
        /// Requires another, or is required.
        case link
    }

    struct App {
        let name: String
        let sort: Sort
        /// How many processes it has while it runs.
        let processes: Int
        /// Its record carries the number of the last STATUS.
        let says: Bool
        /// Arguments of torpor-test-app.
        let arguments: [String]
        /// Lines of its table in the configuration.
        let keys: [String]
        /// Names of those that it requires, directly.
        var requires: [String] = []
    }

    let apps: [App]

    init() {
        var apps: [App] = []
        func add(
            _ name: String,
            count: Int,
            sort: Sort = .lasting,
            processes: Int = 1,
            says: Bool = false,
            _ arguments: String,
            _ keys: [String] = []
        ) {
            for index in 1...count {
                apps.append(
                    App(
                        name: "\(name)\(index)",
                        sort: sort,
                        processes: processes,
                        says: says,
                        arguments: arguments.split(separator: " ").map(String.init),
                        keys: keys
                    )
                )
            }
        }
        add("plain", count: 8, "--period 10000")
        add("hooked", count: 2, "--period 10000", [#"before_start = ["@B/torpor-test-app", "--hook", "20"]"#])
        add("beat", count: 6, says: true, "--ready 30 --beat 100", [#"ready = "notify""#, #"watchdog = "30s""#])
        add("tree", count: 5, processes: 3, "--tree --period 20000")
        add("mortal", count: 6, sort: .mortal, "--life 20-400 --period 5000", [#"restart = "always""#])
        add("oneshot", count: 4, sort: .oneshot, "--oneshot 10 --period 4000", [#"type = "oneshot""#])
        add("slow", count: 4, "--slow 300")
        add("stubborn", count: 3, "--stubborn", [#"grace = "200ms""#])
        add("flood", count: 3, "--burst 60 --padding 500 --period 60000", [#"log_max_size = "256KiB""#])
        add("both", count: 3, "--both")
        add("store", count: 3, sort: .mortal, "--store --life 300-1500", [#"restart = "always""#, #"ready = "exec""#])
        add("base", count: 1, sort: .link, "--ready 20", [#"ready = "notify""#])
        add("middle", count: 1, sort: .link, "--ready 20", [#"ready = "notify""#, #"requires = ["base1"]"#])
        add("top", count: 1, sort: .link, "--ready 20", [#"ready = "notify""#, #"requires = ["middle1"]"#])
        for index in apps.indices {
            if apps[index].name == "middle1" { apps[index].requires = ["base1"] }
            if apps[index].name == "top1" { apps[index].requires = ["middle1"] }
        }
        self.apps = apps
    }

    /// The configuration; `@D` and `@B` are the folders of the daemon and of the programs.
    func configuration(seed: UInt64) -> String {
        var text = """
            [defaults]
            environment = { CHAOS_SEED = "\(seed)" }
            limits = { core = "0" }
            grace = "3s"
            launch_deadline = "15s"
            # Less than they live: those that are to sleep come to it.
            background_time = "10ms"
            log_max_size = "none"
            log_max_files = 1000
            [defaults.restart_backoff]
            initial = "5ms"
            cap = "40ms"
            limit = 10000
            window = "1s"

            """
        for app in apps {
            let words = (["@B/torpor-test-app"] + app.arguments).map { "\"\($0)\"" }.joined(separator: ", ")
            text += "[apps.\(app.name)]\nexec = [\(words)]\n" + app.keys.map { $0 + "\n" }.joined()
        }
        return text.replacingOccurrences(of: "@B", with: Built.folder)
    }

    /// All that an app requires, directly or not.
    func required(by name: String) -> Set<String> {
        var found: Set<String> = []
        var open = [name]
        while let next = open.popLast() {
            for other in apps.first(where: { $0.name == next })?.requires ?? [] where found.insert(other).inserted {
                open.append(other)
            }
        }
        return found
    }

    /// All that require an app, directly or not.
    func dependents(of name: String) -> Set<String> {
        Set(apps.map(\.name).filter { required(by: $0).contains(name) })
    }
}
