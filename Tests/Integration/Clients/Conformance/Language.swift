// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Testing

/// A library for apps, by the language of who uses it.
enum Language: String, CaseIterable, CustomTestStringConvertible {
    case c
    case python
    case asyncio
    case swift
    case shell

    var testDescription: String { rawValue }

    /// How the scenario's app is started, and what its environment has beside `CONFORMANCE`; files come into `folder`.
    func program(in folder: String) throws -> (exec: [String], environment: [String: String]) {
        switch self {
        case .c: return ([try Self.compile(into: folder)], [:])
        case .python: return (Self.python([]), Self.pythonEnvironment)
        case .asyncio: return (Self.python(["--asyncio"]), Self.pythonEnvironment)
        case .swift: return ([Built.path("conformance-app")], [:])
        case .shell:
            let script = Self.scenario + "/shell/app.sh"
            return ([Built.path("torpor"), "delegate", "--on", "*=\(script)"], ["TORPOR": Built.path("torpor")])
        }
    }

    /// Of the sources.
    static let sources = Sources.root
    private static let scenario = sources + "/Tests/Integration/Clients/Conformance"

    private static let pythonEnvironment = [
        "PYTHONPATH": sources + "/Clients/python", "PYTHONDONTWRITEBYTECODE": "1",
    ]

    private static func python(_ options: [String]) -> [String] {
        ["/usr/bin/python3", "-S", scenario + "/python/app.py"] + options
    }

    /// The library is two files of the sources: this is how a program has it.
    private static func compile(into folder: String) throws -> String {
        let library = sources + "/Clients/c"
        let (code, output) = try Spawn.run([
            "/usr/bin/cc", "-std=c99", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I\(library)",
            "\(scenario)/c/app.c", "\(library)/torpor_app.c", "-o", "\(folder)/app", "-pthread",
        ])
        guard code == 0 else { throw Trouble("the app in C does not compile: \(output)") }
        return folder + "/app"
    }
}
