// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI

/// Loads configurations from files, or from texts in memory.
public enum ConfigurationLoader {
    /// Reads a configuration file and all files that it includes. On failure, the result contains all errors and
    /// warnings.
    ///
    /// - Parameters:
    ///   - path: the file's path, in the form in which diagnostics should show it; `nil` for the default path.
    ///   - environment: the supervisor's environment, which determines the default directories.
    ///   - userID: the user that the supervisor will run as; `nil` for the user of this process.
    ///   - system: access to files, users and groups, which tests replace.
    public static func load(
        path: String? = nil,
        environment: [String: String],
        userID: UInt32? = nil,
        system: ConfigurationSystem = .live
    ) -> Result<TorporConfiguration, DiagnosticList> {
        let userID = userID ?? system.effectiveUserID
        let path = path ?? DefaultPaths(environment: environment, userID: userID).configuration
        return load(path, environment: environment, userID: userID, system: system)
    }

    /// Reads a configuration again from the stored texts of its files, even if the files on disk have changed since.
    ///
    /// With the same environment and user, the result is the same. Users and groups are not looked up again.
    ///
    /// - Parameters:
    ///   - sources: the texts of all files. `include` can find only these files.
    ///   - environment: the supervisor's environment, which determines the default directories.
    ///   - userID: the user that the supervisor runs as; `nil` for the user of this process.
    public static func load(
        sources: ConfigurationSources,
        environment: [String: String],
        userID: UInt32? = nil
    ) -> Result<TorporConfiguration, DiagnosticList> {
        let system = ConfigurationSystem(
            sources,
            userID: userID ?? Users.effectiveUID,
            groupID: Users.effectiveGID
        )
        return load(sources.path, environment: environment, userID: system.effectiveUserID, system: system)
            .map { configuration in
                var configuration = configuration
                configuration.sources = sources
                for (key, path) in sources.directories {
                    SupervisorKeyEffects.setDirectory(key, path, &configuration.supervisor)
                }
                return configuration
            }
    }

    /// The state directory of a configuration. Errors in other parts of the configuration are ignored.
    public static func stateDirectory(
        path: String,
        environment: [String: String],
        system: ConfigurationSystem = .live
    ) -> String {
        let specification = SupervisorSpecification(environment: environment, userID: system.effectiveUserID)
        var reader = FileReader(system: system, sink: DiagnosticSink(), supervisor: specification)
        reader.read(path)
        return reader.supervisor.stateDirectory
    }

    private static func load(
        _ path: String,
        environment: [String: String],
        userID: UInt32,
        system: ConfigurationSystem
    ) -> Result<TorporConfiguration, DiagnosticList> {
        let sink = DiagnosticSink()
        var reader = FileReader(
            system: system,
            sink: sink,
            supervisor: SupervisorSpecification(environment: environment, userID: userID)
        )
        reader.read(path)
        let findings = checkPolicies(reader)
        let (apps, templates) = Resolver(
            system: system,
            userID: userID,
            drafts: reader.drafts,
            keepAliveMinimum: reader.supervisor.keepAliveMinimum,
            ownPaths: reader.ownPaths
        ).apps()
        checkMain(reader, apps)
        checkDesktop(reader, userID: userID)
        checkGroups(reader)
        checkProtection(reader, apps + templates)
        if !sink.hasErrors { checkSelectors(reader, findings, apps, templates) }
        checkExposure(reader)
        // Warn if there are no apps, but only in `torpor check` (which sets `inspection`), or if `[defaults]` shows
        // that apps were intended. A running supervisor may have no apps yet.
        if system.inspection != nil || reader.hasDefaults, apps.isEmpty, templates.isEmpty, !sink.hasErrors,
            !sink.isPartial
        {
            let what = reader.hasDefaults ? "has [defaults], but no apps" : "has no apps"
            Context(sink: sink, file: path, folder: "").warning("\(what): add a table [apps.NAME]", at: .unknown)
        }
        guard !sink.hasErrors else { return .failure(DiagnosticList(diagnostics: sink.sorted)) }
        return .success(
            TorporConfiguration(
                supervisor: reader.supervisor,
                apps: apps,
                templates: templates,
                policies: reader.policies.values.map(\.policy).sorted { $0.name < $1.name },
                sources: ConfigurationSources(workingDirectory: system.workingDirectory, files: reader.files),
                warnings: sink.sorted
            )
        )
    }

    /// Warns of apps with protected data that this machine cannot encrypt, because torpord will not launch them.
    private static func checkProtection(_ reader: FileReader, _ apps: [AppSpecification]) {
        let names = Set(
            apps.filter { $0.data.protection.kind != nil && $0.data.protection.fallback == .none }.map(\.template)
        )
        let state = reader.supervisor.stateDirectory
        guard !names.isEmpty, reader.system.inspection?.encrypts(state) == false else { return }
        for name in names.sorted() {
            reader.drafts[name]?.warning(
                "protected",
                "the app is not launched, since the filesystem of \(state) encrypts no folders: ext4 (after ‘tune2fs -O "
                    + "encrypt DEVICE’), f2fs and UBIFS can; or set protected_fallback = \"permissions\""
            )
        }
    }

    /// Warns of configuration files that every user of the machine can change, and of such folders that `include`
    /// lists.
    private static func checkExposure(_ reader: FileReader) {
        var told: Set<String> = []
        for path in reader.files.map(\.path) + reader.listed {
            let exposure = reader.system.exposure(Path.join(reader.system.workingDirectory, path))
            guard let exposure, told.insert(exposure.path).inserted else { continue }
            Context(sink: reader.sink, file: path, folder: "").warning(exposure.sentence, at: .unknown)
        }
    }

    /// Reports an error if root sets `desktop_entries`. The entries of root's supervisor would appear for all users, so
    /// root must create them with an explicit command.
    private static func checkDesktop(_ reader: FileReader, userID: UInt32) {
        guard reader.supervisor.desktopEntries, userID == 0 else { return }
        reader.supervisorOrigins["desktop_entries"]?.error(
            "is for the supervisor of a user: root writes the entries of all users with ‘torpor desktop sync --system’"
        )
    }

    /// Warns of groups that do not exist although the configuration gives their members access to this supervisor.
    private static func checkGroups(_ reader: FileReader) {
        let supervisor = reader.supervisor
        let keys = [
            ("readers", supervisor.readers), ("operators", supervisor.operators), ("posters", supervisor.posters),
            ("exporters", supervisor.exporters),
        ]
        for (key, groups) in keys {
            for group in groups where reader.system.groupID(group) == nil {
                let sentence = MissingAccount.sentence(group: group, "no user has these rights through the group")
                reader.supervisorOrigins[key]?.warning(sentence)
            }
        }
    }

    private static func checkMain(_ reader: FileReader, _ apps: [AppSpecification]) {
        guard let name = reader.supervisor.main, !apps.contains(where: { $0.name == name }) else { return }
        let instances = apps.filter { $0.template == name }.map(\.name)
        let problem =
            if reader.drafts[name]?.specification.scenes != nil {
                "\(quoted(name)) is a template of scenes, which never runs itself"
            } else if let first = instances.first {
                "\(quoted(name)) has instances: write the name of one, such as \(quoted(first))"
            } else {
                "there is no app \(quoted(name))" + Nearest.hint(name, among: apps.lazy.map(\.name))
            }
        reader.supervisorOrigins["main"]?.missing(problem)
    }

    /// Reports what is wrong with policies, and returns what those in use say of their options.
    private static func checkPolicies(_ reader: FileReader) -> [String: PolicyFinding] {
        for name in reader.supervisor.policies where reader.policies[name] == nil {
            let origin = reader.supervisorOrigins["policies"]
            let hint = origin?.hint(name, among: reader.policies.keys) ?? ""
            let remedy = hint.isEmpty ? ": add it, with \(MachineHints.library(of: name))" : hint
            origin?.missing(
                "there is no [policies.\(name)] for the policy \(quoted(name))\(remedy)"
            )
        }
        for (name, entry) in reader.policies where !reader.supervisor.policies.contains(name) {
            entry.origin.warning("is not used: [supervisor] policies does not name \(quoted(name))")
        }
        var findings: [String: PolicyFinding] = [:]
        for entry in reader.policies.values {
            let folder = reader.supervisor.policyDirectory
            guard MachineHints.checkLibrary(entry.policy, entry.origin, in: folder, reader.system) else { continue }
            guard reader.supervisor.policies.contains(entry.policy.name) else { continue }
            guard let finding = reader.system.policyFinding(entry.policy, folder) else { continue }
            if let refusal = finding.refusal { entry.origin.error(refusal) }
            if let obstacle = finding.obstacle { entry.origin.warning(obstacle) }
            findings[entry.policy.name] = finding
        }
        return findings
    }

    /// Warns of policies' options that select no app, of which an app with a mistyped name would be a case.
    private static func checkSelectors(
        _ reader: FileReader,
        _ findings: [String: PolicyFinding],
        _ apps: [AppSpecification],
        _ templates: [AppSpecification]
    ) {
        let known = PolicySelector.Apps(apps, templates: templates)
        for entry in reader.policies.values {
            for selector in findings[entry.policy.name]?.selectors ?? [] {
                guard let problem = selector.problem(known, entry.origin) else { continue }
                entry.origin.warning("options.\(selector.option): \(problem)")
            }
        }
    }
}
