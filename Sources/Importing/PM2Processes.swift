// SPDX-License-Identifier: Apache-2.0

/// Converts PM2's processes to apps of an ecosystem file. The processes come from `pm2 jlist` or `pm2 prettylist`, or
/// from the file `~/.pm2/dump.pm2`.
enum PM2Processes {
    /// Whether the table describes a process of PM2. In PM2's lists, the description is in an inner table `pm2_env`; in
    /// dump.pm2 it is in the table itself.
    static func isProcess(_ node: DataNode) -> Bool { node["pm2_env"] != nil || node["pm_exec_path"] != nil }

    private static func inner(_ node: DataNode) -> DataNode? {
        isProcess(node) ? node["pm2_env"] ?? node : nil
    }

    /// The PATH in the environment of a process; nil if the table is an app of an ecosystem file.
    static func path(_ node: DataNode) -> String? { inner(node)?["env"]?["PATH"]?.text }

    // MARK: Instances

    /// A key for the number of instances, which the conversion adds to a process's table. PM2 itself has no such key.
    private static let count = "torpor:count"
    private static let stopped = "torpor:stopped"

    /// Merges the processes of each app into one entry, since PM2 lists every instance of an app as a process.
    static func merged(_ list: [DataNode], _ result: inout ImportedConfiguration) -> [DataNode] {
        guard list.contains(where: isProcess) else { return list }
        result.remark(
            "PM2 stores the environment of the shell that started an app. PATH, HOME and other variables of a session "
                + "are left out, all others are kept: remove those that an app does not need."
        )
        var merged = OrderedTable<[DataNode]>()
        var modules: [String] = []
        for (index, node) in list.enumerated() {
            guard let process = inner(node) else {
                merged["\(index)"] = [node]
                continue
            }
            let name = process["name"]?.text ?? node["name"]?.text
            if process["pmx_module"]?.flag == true {
                modules.append(name ?? "\(index)")
                continue
            }
            let words = [name ?? "\(index)", process["namespace"]?.text, process["pm_exec_path"]?.text]
            // No name or path contains a NUL, so this key is unique.
            let key = "\0" + words.map { $0 ?? "" }.joined(separator: "\0")
            merged[key] = (merged[key] ?? []) + [node]
        }
        if !modules.isEmpty {
            result.remark("\(LeftOutKeys.list(modules)) \(modules.count > 1 ? "are" : "is") left out: a module of PM2.")
        }
        return merged.members.map { one($0.value) }
    }

    private static func one(_ nodes: [DataNode]) -> DataNode {
        guard let first = nodes.first, let process = inner(first) else { return nodes[0] }
        var members = process.members ?? []
        let down = nodes.count { ["stopped", "errored"].contains(inner($0)?["status"]?.text) }
        members[count] = DataNode(value: .scalar("\(nodes.count)", isPlain: true), line: 0)
        members[stopped] = DataNode(value: .scalar("\(down)", isPlain: true), line: 0)
        // PM2 increments this variable from instance to instance, so the lowest value is the one of the app.
        if let name = process["increment_var"]?.text, var variables = process["env"]?.members {
            let values = nodes.compactMap { inner($0)?["env"]?[name]?.integer }
            if let least = values.min() {
                variables[name] = DataNode(value: .scalar("\(least)", isPlain: true), line: 0)
                members["env"] = DataNode(value: .map(variables), line: 0)
            }
        }
        return DataNode(
            value: .map([("pm2_env", DataNode(value: .map(members), line: process.line))]),
            line: first.line
        )
    }

    // MARK: One app

    private static let renamed = ["pm_exec_path": "script", "pm_cwd": "cwd", "exec_interpreter": "interpreter"]
    private static let kept: Set = [
        "name", "args", "node_args", "exec_mode", "autorestart", "max_restarts", "min_uptime", "restart_delay",
        "exp_backoff_restart_delay", "max_memory_restart", "kill_timeout", "cron_restart", "env", "uid", "gid",
        "namespace", "autostart", "increment_var", "instance_var", "listen_timeout", "shutdown_with_message",
        "stop_exit_codes", "treekill", "wait_ready", "watch",
    ]

    /// Converts a process's table to the keys that an ecosystem file has for an app.
    static func app(_ node: DataNode) -> DataNode {
        guard let process = inner(node) else { return node }
        var members = OrderedTable<DataNode>()
        for (key, value) in process.members ?? [] where !value.isNull {
            if let name = renamed[key] {
                members[name] = value
            } else if kept.contains(key) {
                members[key] = value
            }
        }
        let count = process[count]?.integer ?? 1
        if count > 1 {
            members["instances"] = DataNode(value: .scalar("\(count)", isPlain: true), line: 0)
        } else {
            // PM2 always stores these keys, but they have an effect only if the app has several instances.
            // Only the cluster mode has one with a single instance too: PM2 opens its port.
            let isCluster = members["exec_mode"]?.text?.hasPrefix("cluster") == true
            members = members.filtered {
                !["increment_var", "instance_var"].contains($0.key) && ($0.key != "exec_mode" || isCluster)
            }
        }
        // PM2 stores a shell line as a shell with arguments: convert it back to a line.
        if let shell = members["script"]?.text, ["bash", "sh"].contains(SourceTree.lastPart(shell)),
            let words = members["args"]?.list, words.count == 2, words[0].text == "-c", let line = words[1].text,
            line.contains(" ")
        {
            members = members.filtered { !["args", "interpreter", "node_args"].contains($0.key) }
            members["script"] = words[1]
        }
        if let variables = members["env"]?.members {
            let instance = members["instance_var"]?.text ?? "NODE_APP_INSTANCE"
            let own = variables.filtered { name, value in
                value.text != nil && name != instance && name != "NODE_APP_INSTANCE" && !isOfSession(name)
            }
            members["env"] = DataNode(value: .map(own), line: members["env"]?.line ?? 0)
        }
        return DataNode(value: .map(members), line: node.line)
    }

    /// Adds a remark if PM2 had stopped the app or some of its instances.
    static func remark(on node: DataNode, _ program: inout ImportedProgram) {
        guard let process = inner(node), program.isTranslated, let down = process[stopped]?.integer, down > 0 else {
            return
        }
        let count = process[count]?.integer ?? 1
        guard down == count else {
            return program.remark("\(down) of its \(count) instances \(down > 1 ? "were" : "was") stopped in PM2")
        }
        program["launch"] = .string("on-demand")
        program.remark("was stopped in PM2: ‘torpor start’ starts it; remove launch if it is to start with torpord")
    }

    // MARK: The session

    private static let session: Set = [
        "_", "COLORTERM", "COLUMNS", "CONDA_PROMPT_MODIFIER", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION", "DISPLAY",
        "EDITOR", "HISTCONTROL", "HISTFILE", "HISTSIZE", "HOME", "HOSTNAME", "HOSTTYPE", "INVOCATION_ID",
        "JOURNAL_STREAM", "LESS", "LESSCLOSE", "LESSOPEN", "LINES", "LOGNAME", "LSCOLORS", "LS_COLORS", "MACHTYPE",
        "MAIL", "MANAGERPID", "MANPATH", "MOTD_SHOWN", "NOTIFY_SOCKET", "OLDPWD", "OSTYPE", "PAGER", "PATH", "PM2_HOME",
        "PM2_PROGRAMMATIC", "PM2_USAGE", "PROMPT_COMMAND", "PS1", "PS2", "PWD", "SHELL", "SHLVL", "SESSION_MANAGER",
        "STY", "SYSTEMD_EXEC_PID", "TERM", "TMUX", "TMUX_PANE", "USER", "VISUAL", "WATCHDOG_PID", "WATCHDOG_USEC",
        "WAYLAND_DISPLAY", "WINDOWID", "XAUTHORITY", "debian_chroot", "pm_id", "unique_id", "which_declare",
    ]
    private static let sessions = [
        "BASH_FUNC_", "GDM_", "GNOME_", "GPG_", "GTK_", "KDE_", "LISTEN_", "NVM_", "QT_", "SSH_", "SUDO_", "TERM_",
        "VSCODE_", "VTE_", "XDG_", "npm_",
    ]

    /// Whether the variable belongs to a login or terminal, or to PM2 itself. torpord sets HOME, USER and similar
    /// variables to those of the app's user.
    private static func isOfSession(_ name: String) -> Bool {
        session.contains(name) || sessions.contains { name.hasPrefix($0) }
    }
}
