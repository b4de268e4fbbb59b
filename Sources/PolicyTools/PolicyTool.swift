// SPDX-License-Identifier: Apache-2.0

package import ArgumentParser
package import CommandLinePages
package import Configuration
import Linux
package import Policies

/// Options of tools that run a policy themselves.
package struct PolicyToolOptions: ParsableArguments {
    @Option(
        name: .customLong("option"),
        help: ArgumentHelp(
            "Set an option of the policy, its value as in the configuration or as plain text; may be repeated.",
            valueName: "key=value"
        )
    )
    package var options: [String] = []

    @Option(help: ArgumentHelp("The torpor-policy-host program to run.", valueName: "path"), completion: .file())
    var host: String?

    @Flag(help: "One JSON document on standard output.")
    package var json = false

    /// Creates options with their default values.
    package init() {}

    package func validate() throws {
        for option in options where option.split(separator: "=", maxSplits: 1).count != 2 || option.hasPrefix("=") {
            throw ValidationError("“\(option)” is not an option of a policy: write key=value, as in max_active=2")
        }
    }
}

/// A policy that this program runs, in its own process.
package struct PolicyTool {
    package let path: String
    package let options: [PolicyOption]
    let settings: HostProcess.Settings

    /// A policy as a configuration defines it.
    package init(_ policy: PolicySpecification, in folder: String) throws(Failure) {
        path = policy.path.hasPrefix("/") ? policy.path : folder + "/" + policy.path
        options = policy.options.sorted { $0.key < $1.key }.flatMap { Self.flat($0.value, $0.key) }
        settings = try Self.settings(host: nil)
    }

    package init(library: String, _ tool: PolicyToolOptions) throws(Failure) {
        path = Self.find(library)
        options = Self.read(tool.options)
        settings = try Self.settings(host: tool.host)
    }

    /// The path of the library with that name: in the current folder if it is there, otherwise in the default folder of
    /// policies.
    private static func find(_ library: String) -> String {
        guard !library.contains("/"), !File.exists(library) else { return library }
        let defaults = DefaultPaths(environment: ThisProcess.variables, userID: Users.effectiveUID)
        let installed = defaults.policies + "/" + library
        return File.exists(installed) ? installed : library
    }

    private static func settings(host: String?) throws(Failure) -> HostProcess.Settings {
        var settings = HostProcess.Settings(program: try program(host))
        // Allow as many pieces of advice in an answer as torpord allows.
        settings.adviceLimit = PolicyAnswer.limit(events: 1, apps: PolicyView.capacity)
        let user = HostProcess.unprivilegedUser()
        settings.user = user?.user
        settings.group = user?.group
        return settings
    }

    private static func program(_ named: String?) throws(Failure) -> String {
        if let named {
            guard File.isExecutable(named) else {
                throw Failure(status: .usage, message: "\(named) is not a program: name torpor-policy-host with --host")
            }
            return named
        }
        if let path = HostProcess.findProgram() { return path }
        throw Failure(
            status: .failed,
            message:
                "torpor-policy-host, which policies run in, is neither beside torpor nor in ../libexec/torpor: name "
                + "it with --host"
        )
    }

    // MARK: Options

    /// All options flattened, sorted by key.
    private static func read(_ texts: [String]) -> [PolicyOption] {
        texts.map { text in
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (key: String(parts[0]), text: String(parts[1]))
        }
        .sorted { $0.key < $1.key }
        .flatMap { flat(value($0.text), $0.key) }
    }

    /// Parses the value as TOML.
    private static func value(_ text: String) -> ConfigurationValue {
        let document = "[policies.it]\npath = \"x\"\noptions = { it = \(text) }\n"
        let sources = ConfigurationSources(
            workingDirectory: "/",
            files: [ConfigurationSources.File(path: "/option.toml", text: Array(document.utf8))]
        )
        guard !text.contains("\n"),
            case .success(let read) = ConfigurationLoader.load(sources: sources, environment: [:]),
            let options = read.policies.first?.options, options.count == 1, let value = options["it"]
        else { return .string(text) }
        return value
    }

    private static func flat(_ value: ConfigurationValue, _ key: String) -> [PolicyOption] {
        switch value {
        case .string(let text): [PolicyOption(key: key, value: .string(text))]
        case .integer(let number): [PolicyOption(key: key, value: .integer(number))]
        case .double(let number): [PolicyOption(key: key, value: .number(number))]
        case .boolean(let flag): [PolicyOption(key: key, value: .boolean(flag))]
        case .date(let text): [PolicyOption(key: key, value: .date(text))]
        case .array(let elements): elements.enumerated().flatMap { flat($1, "\(key).\($0)") }
        case .table(let members):
            members.sorted { $0.key < $1.key }.flatMap { flat($0.value, "\(key).\($0.key)") }
        }
    }

    // MARK: The process

    /// What the policy says of its options.
    package var finding: PolicyFinding {
        let outcome = PolicyProbe.run(path, options, settings)
        return PolicyFinding(
            refusal: outcome.refusal,
            obstacle: outcome.obstacle,
            selectors: outcome.selectors(in: options)
        )
    }

    /// Starts the policy with this view.
    func start(_ library: TrustedLibrary, _ view: PolicyView) throws(PolicyFailure) -> HostProcess {
        try HostProcess(
            library: library,
            options: options,
            view: view.descriptor,
            viewSize: view.size,
            settings: settings
        )
    }
}
