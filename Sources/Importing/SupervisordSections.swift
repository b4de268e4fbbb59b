// SPDX-License-Identifier: Apache-2.0

/// Handles sections that concern supervisord itself. They are left out, and a remark gives the reason.
enum SupervisordSections {
    private static let log = "torpord's own messages go to its standard error, or to the journal of its service"
    private static let daemon = "torpord stays in the foreground, and [supervisor] says where its files are"

    /// Keys of `[supervisord]` that do not concern programs, each with the reason why it is left out.
    private static let settings: [String: String] = [
        "logfile": log, "logfile_maxbytes": log, "logfile_backups": log, "loglevel": log, "silent": log,
        "pidfile": daemon, "nodaemon": daemon, "identifier": daemon,
        "nocleanup": "log_max_files and log_max_age set when old logs are removed",
        "childlogdir": "the output of all programs goes to log_directory of [supervisor]",
        "strip_ansi": "output is logged as it comes, with its colors",
    ]
    /// Keys of `[supervisord]` that apply to all programs.
    private static let ofPrograms: Set = ["environment", "user", "umask", "directory", "minfds", "minprocs"]

    private static let socket =
        "Torpor has its own control socket, and readers and operators of [supervisor] set who may use it"
    private static let plugin = "it extends supervisord itself"
    /// Sections that are not translated, each with the reason.
    private static let others: [String: String] = [
        "unix_http_server": socket, "inet_http_server": socket, "supervisorctl": socket, "rpcinterface": plugin,
        "ctlplugin": plugin,
    ]

    /// Adds remarks about the keys of `[supervisord]` that are left out.
    fileprivate static func settings(_ section: INI.Section, _ result: inout ImportedConfiguration) {
        var leftOut = LeftOutKeys()
        for entry in section.entries where !ofPrograms.contains(entry.key) {
            leftOut.add(entry.key, because: settings[entry.key] ?? "it is not a key of supervisord", at: entry.line)
        }
        tell(leftOut, section, &result)
    }

    /// Adds a remark about a section that is left out, with its keys.
    static func other(_ section: INI.Section, _ result: inout ImportedConfiguration) {
        guard let reason = others[String(section.name.prefix { $0 != ":" })] else {
            return result.remark("The section [\(section.name)] is not known, and is left out.", at: section.line)
        }
        var leftOut = LeftOutKeys()
        for entry in section.entries { leftOut.add(entry.key, because: reason, at: entry.line) }
        tell(leftOut, section, &result)
    }

    /// Adds a remark about the keys for all programs in a file whose `[include]` probably names the imported folder.
    static func notRead(_ path: String, _ tree: SourceTree, _ result: inout ImportedConfiguration) {
        guard let text = tree.text(path) else { return }
        let main = INI(text)
        guard main["include"] != nil, let section = main["supervisord"] else { return }
        let keys = ofPrograms.filter { section[$0] != nil }.sorted()
        guard !keys.isEmpty else { return }
        result.remark(
            "\(LeftOutKeys.list(keys)) of [supervisord] in \(path) \(keys.count > 1 ? "are" : "is") left out, since only "
                + "the folder is imported: import \(path) instead if it includes the folder."
        )
    }

    /// Adds remarks about values that a later line or file replaces. supervisord reads its files with a parser that is
    /// not strict, for which the last value counts (options.py, UnhosedConfigParser).
    static func overridden(_ section: INI.Section, _ result: inout ImportedConfiguration) {
        for entry in section.overridden {
            let place = section.line(of: entry.key)
            let last = "line \(place?.number ?? 0)" + (place?.file.map { " of \($0)" } ?? "")
            result.remark(
                "\(entry.key) of [\(section.name)] is left out here, since \(last) sets it again: the last value counts, "
                    + "as in supervisord.",
                at: entry.line
            )
        }
    }

    private static func tell(
        _ leftOut: LeftOutKeys,
        _ section: INI.Section,
        _ result: inout ImportedConfiguration
    ) {
        for (text, place) in leftOut.sentences(of: "of [\(section.name)]") { result.remark(text + ".", at: place) }
    }
}

/// The values of `[supervisord]` that apply to all programs.
struct SupervisordDefaults {
    private(set) var variables = OrderedTable<String>()
    /// The same variables with all others in their values replaced by their current values. A variable that names one
    /// that is not set is missing.
    private(set) var currentVariables = OrderedTable<String>()
    private(set) var directory: String?
    private(set) var user: String?
    private(set) var umask: String?
    /// The limits of open files per program and of processes per user, as texts with the soft and the hard limit.
    private(set) var limits = OrderedTable<String>()

    /// supervisord expands `environment` of this section twice, so that a `%` is written `%%%%` there.
    private static func onceExpanded(_ text: String) -> String { text.replacing("%%%%", with: "%%") }

    init(_ section: INI.Section?, folder: String, _ tree: SourceTree, _ result: inout ImportedConfiguration) {
        guard let section else { return }
        SupervisordSections.settings(section, &result)
        var expansion = SupervisordExpansion(
            values: ["here": folder, "host_node_name": tree.hostName],
            variables: tree.variables
        )
        expansion.hidden = expansion.setHere
        func read<Value>(
            _ key: String,
            _ read: (String) throws(SupervisordExpansion.Failure) -> Value?,
            _ complaint: String
        ) -> Value? {
            guard let text = section[key] else { return nil }
            if text.contains("%(host_node_name)") {
                result.remark(SupervisordExpansion.remark(onHost: tree) + ".", at: section.line(of: key))
            }
            do throws(SupervisordExpansion.Failure) {
                if let value = try read(text) { return value }
                throw SupervisordExpansion.Failure(message: complaint)
            } catch {
                result.remark("\(key) of [supervisord] is left out: \(error.message).", at: section.line(of: key))
                return nil
            }
        }
        variables =
            OrderedTable(
                read(
                    "environment",
                    { text throws(SupervisordExpansion.Failure) in
                        SupervisordValues.environment(try expansion.late(Self.onceExpanded(text)))
                    },
                    "it is not KEY=\"value\",KEY=\"value\""
                )?.map { ($0.name, $0.value) } ?? []
            )
        for (name, value) in SupervisordValues.environment(section["environment"] ?? "") ?? [] {
            currentVariables[name] = try? expansion.now(Self.onceExpanded(value))
        }
        let fixed = expansion.setHere.filter { section["environment"]?.contains("%(ENV_\($0))") == true }.sorted()
        if !fixed.isEmpty {
            let values = fixed.map { "%(ENV_\($0))s becomes \(quoted(tree.variables[$0] ?? ""))" }
            result.remark(
                "environment of [supervisord]: \(values.joined(separator: ", ")), as it is set here: Torpor, as a service, "
                    + "would have no value.",
                at: section.line(of: "environment")
            )
        }
        user = read("user", expansion.now, "")
        // root is the default, so it need not be written for each program.
        if let name = user, ["root", "0"].contains(name) { user = nil }
        // minfds and minprocs are minimums to which supervisord raises its own limits, which its programs inherit.
        limits["nofile"] = read(
            "minfds",
            { UInt64($0).flatMap { $0 > 1024 ? tree.filesOfServices.raised(to: $0) : nil } },
            "an app may open 1024 files anyway"
        )
        let hard = tree.filesOfServices.hard
        if limits["nofile"] != nil, let wanted = section["minfds"].flatMap({ UInt64($0) }), wanted > hard {
            result.remark(
                "minfds: \(wanted) is above \(hard), the hard limit of open files that a service has here: only a "
                    + "torpord with CAP_SYS_RESOURCE, as root usually has, can launch apps with this limits.nofile.",
                at: section.line(of: "minfds")
            )
        } else if limits["nofile"] != nil, hard < SourceTree.mostFilesOfServices {
            result.remark(
                "minfds: \(hard), the hard limit in limits.nofile, is that of the import; services usually have "
                    + "\(SourceTree.mostFilesOfServices).",
                at: section.line(of: "minfds")
            )
        }
        limits["nproc"] = read(
            "minprocs",
            { UInt64($0).flatMap { $0 > tree.processes.soft ? tree.processes.raised(to: $0) : nil } },
            "its user may have as many processes anyway"
        )
        let isDaemon = !(SupervisordValues.flag(section["nodaemon"] ?? "false") ?? false)
        let foreground = "it applies only to a daemon, and nodaemon = true is set"
        directory = read(
            "directory",
            { text throws(SupervisordExpansion.Failure) in
                let path = try expansion.now(text)
                return isDaemon && path.hasPrefix("/") ? path : nil
            },
            isDaemon ? "it is not an absolute path" : foreground
        )
        umask = read("umask", { isDaemon ? $0 : nil }, foreground)
    }
}
