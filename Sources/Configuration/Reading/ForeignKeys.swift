// SPDX-License-Identifier: Apache-2.0

/// Keys of other supervisors that users write by mistake, each with the key of Torpor that replaces it.
enum ForeignKeys {
    /// For an unknown key of an app: a hint that names the right key. Nil if no other supervisor has the unknown key.
    static func hint(_ key: String, _ value: Node.Value, at path: String) -> String? {
        if let text = besides(key, path) { return text }
        guard path.hasPrefix("apps.") || path.hasPrefix("defaults."), let text = table[key.lowercased()] else {
            return nil
        }
        // Give hints only for keys of the app itself, because in tables such as `environment` and `limits` any name may
        // be valid.
        let depth = path.split(separator: ".").count
        let isDirect = path.hasPrefix("defaults.") ? depth == 2 : depth == 3 || path.hasPrefix("apps.\"")
        return isDirect ? ForeignValues.hint(key, value) ?? text : nil
    }

    /// A hint if a key of the app was written in `container`, or if a key of `container` was written in the app;
    /// otherwise nil.
    private static func besides(_ key: String, _ path: String) -> String? {
        let parts = path.split(separator: ".")
        guard path.hasPrefix("apps."), parts.count >= 3 else { return nil }
        // Give no hints in tables inside `container`, such as `container.health`, which have keys of their own.
        if parts.count >= 4, parts[parts.count - 2] == "container" {
            guard AppKeys.all.contains(where: { $0.name.utf8.elementsEqual(key.utf8) }) else {
                return key == "command" || key == "cmd" ? "write exec of the app, above the table container" : nil
            }
            return "\(key) is a key of the app: write it above the table container"
        }
        guard parts.count == 3, onlyContainers.contains(key) else { return nil }
        return "it is a key of container: write container = { image = \"IMAGE\", \(key) = … }, or [apps.NAME.container]"
    }

    private static let onlyContainers: Set = [
        "image", "pull", "volumes", "networks", "read_only", "tmpfs", "cap_add", "cap_drop", "shm_size", "hostname",
        "secrets",
    ]

    private static let table: [String: String] = {
        var table: [String: String] = [:]
        for (keys, hint) in all { for key in keys { table[key] = hint } }
        return table
    }()

    private static let exec = "write exec = [\"PROGRAM\", \"ARGUMENT\"]"
    private static let all: [(keys: [String], hint: String)] = [
        (["command", "cmd", "script", "execstart", "exec_start", "entrypoint", "program", "run"], exec),
        (["oneshot"], "write type = \"oneshot\""),
        (["args", "arguments"], "write them in exec, after the program"),
        (
            ["cwd", "working_directory", "workingdirectory", "working_dir", "workdir", "chdir"],
            "write directory = \"/path\""
        ),
        (["env", "environment_variables", "variables"], "write environment = { NAME = \"value\" }"),
        (["env_file", "environmentfile", "envfile", "dotenv"], "write environment_file = \"/path\""),
        (["user_name", "username", "uid", "run_as"], "write user = \"NAME\""),
        (["group_name", "groupname", "gid"], "write group = \"NAME\""),
        (["supplementarygroups", "group_add", "groups"], "write supplementary_groups = [\"NAME\"]"),
        (["autostart", "auto_start", "enabled"], "write launch = \"foreground\", or \"on-demand\" for false"),
        (
            ["autorestart", "auto_restart", "respawn", "restart_policy"],
            "write restart = \"always\", \"on-failure\" or \"never\""
        ),
        (
            ["restart_sec", "restartsec", "restart_delay", "exp_backoff_restart_delay"],
            "write restart_backoff = { initial = \"1s\" }"
        ),
        (
            ["startretries", "max_restarts", "start_limit_burst", "startlimitburst", "max_attempts"],
            "write restart_backoff = { limit = 10 }"
        ),
        (
            ["startlimitinterval", "startlimitintervalsec", "start_limit_interval"],
            "write restart_backoff = { window = \"5min\" }"
        ),
        (["startsecs", "min_uptime"], "write stable_after = \"10s\""),
        (["exitcodes", "successexitstatus", "stop_exit_codes"], "write success_exit_status = [0, 2]"),
        (["depends_on", "requisite", "bindsto", "binds_to"], "write requires = [\"APP\"]"),
        (["wants"], "write after = [\"APP\"], which sets only the order"),
        (["stopsignal", "killsignal", "kill_signal"], "write stop_signal = \"SIGTERM\""),
        (
            [
                "stopwaitsecs", "timeoutstopsec", "timeout_stop_sec", "stop_timeout", "stop_grace_period",
                "kill_timeout",
            ], "write grace = \"5s\""
        ),
        (["timeoutstartsec", "timeout_start_sec", "start_timeout"], "write launch_deadline = \"5s\""),
        (["killmode", "stopasgroup", "killasgroup"], "write kill_mode = \"all\" or \"main\""),
        (["watchdogsec", "watchdog_sec"], "write watchdog = \"10s\""),
        (
            ["healthcheck", "health_check", "readiness", "wait_ready"],
            "write ready = { http = \"http://127.0.0.1:8000/\" }, or health for checks while it runs"
        ),
        (["execstartpre", "exec_start_pre", "pre_start"], "write before_start = [[\"PROGRAM\"]]"),
        (["execstoppost", "exec_stop_post", "post_stop", "finish"], "write after_stop = [[\"PROGRAM\"]]"),
        (["onfailure"], "write on_failure = [[\"PROGRAM\"]]"),
        (
            ["log_file", "logfile", "stdout_logfile", "out_file", "stdout", "standardoutput", "standard_output"],
            "write log = \"file\", whose folder is log_directory of [supervisor]"
        ),
        (["stderr_logfile", "error_file", "err_file", "standarderror", "standard_error"], "write stderr = \"/path\""),
        (
            ["stdout_logfile_maxbytes", "log_maxsize", "logfile_maxbytes"], "write log_max_size = \"16MiB\""
        ),
        (["stdout_logfile_backups", "logfile_backups"], "write log_max_files = 5"),
        (["replicas", "numprocs", "scale", "processes", "concurrency"], "write instances = 4"),
        (
            ["memory_max", "memorymax", "memorylimit", "mem_limit", "max_memory_restart", "max_memory"],
            "write memory_limit = \"512MiB\""
        ),
        (["labels", "profiles", "namespace"], "write tags = [\"NAME\"]"),
        (["ulimits", "limitnofile"], "write limits = { nofile = 4096 }"),
        (
            ["cron_restart"],
            "a oneshot app with timers = [{ calendar = \"03:00\" }] restarts it: exec = [\"torpor\", \"restart\", "
                + "\"--only-running\", \"NAME\"] (‘torpor help from-pm2’)"
        ),
        (["cron", "schedule", "oncalendar"], "write timers = [{ calendar = \"daily\" }]"),
        (["liveness", "livenessprobe"], "write health = { http = \"http://127.0.0.1:8000/\" }"),
        (
            ["ports", "listen", "listenstream"],
            "write sockets = [{ stream = \"8000\" }]; ports of a container go into [apps.NAME.container]"
        ),
        (
            ["watch"],
            "a oneshot app with paths = [{ changed = \"FOLDER\" }] restarts it: exec = [\"torpor\", \"restart\", "
                + "\"--only-running\", \"NAME\"] (‘torpor help from-pm2’)"
        ),
    ]
}
