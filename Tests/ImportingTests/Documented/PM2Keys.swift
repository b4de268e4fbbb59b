// SPDX-License-Identifier: Apache-2.0

/// The keys that PM2's documentation of an ecosystem file has, each with a value that means something.
enum PM2Keys {
    static let app: [(key: String, value: String, beside: String)] = [
        ("name", #""other""#, ""), ("script", #""b.js""#, ""), ("cwd", #""/srv/x""#, ""), ("args", #""-x""#, ""),
        ("interpreter", #""python3""#, ""), ("interpreter_args", #""--inspect""#, ""), ("node_args", #""--x""#, ""),
        ("source_map_support", "true", ""), ("instance_var", #""NUMBER""#, #""instances":2,"#),
        ("filter_env", #"["A"]"#, ""), ("env", #"{"A":"b"}"#, ""), ("env_production", #"{"A":"b"}"#, ""),
        ("instances", "2", ""), ("exec_mode", #""cluster""#, #""instances":2,"interpreter":"python3","#),
        ("max_memory_restart", #""300M""#, ""), ("watch", "true", ""), ("ignore_watch", #"["x"]"#, ""),
        ("watch_delay", "1000", ""), ("watch_options", #"{"usePolling":true}"#, ""),
        ("log_date_format", #""YYYY""#, ""), ("error_file", #""e.log""#, ""), ("out_file", #""o.log""#, ""),
        ("log_file", #""l.log""#, ""), ("combine_logs", "true", ""), ("merge_logs", "true", ""),
        ("pid_file", #""x.pid""#, ""), ("log_type", #""json""#, ""), ("time", "true", ""),
        ("disable_logs", "true", ""), ("min_uptime", #""10s""#, ""), ("listen_timeout", "8000", ""),
        ("kill_timeout", "5000", ""), ("shutdown_with_message", "true", ""), ("wait_ready", "true", ""),
        ("max_restarts", "5", ""), ("autorestart", "false", ""), ("restart_delay", "4000", ""),
        ("exp_backoff_restart_delay", "100", ""), ("stop_exit_codes", "[3]", ""), ("cron_restart", #""0 0 * * *""#, ""),
        ("vizion", "false", ""), ("post_update", #"["x"]"#, ""), ("force", "true", ""),
        ("append_env_to_name", "true", ""), ("increment_var", #""PORT""#, #""instances":2,"env":{"PORT":3000},"#),
        ("uid", #""www-data""#, ""), ("gid", #""video""#, ""), ("user", #""www-data""#, ""),
        ("namespace", #""n""#, ""), ("env_file", #"".env""#, ""), ("treekill", "false", ""), ("autostart", "false", ""),
        ("automation", "false", ""), ("pmx", "false", ""), ("trace", "true", ""), ("deep_monitoring", "true", ""),
        ("disable_source_map_support", "true", ""), ("port", "3000", ""), ("windowsHide", "true", ""),
    ]

    /// Beside `apps`.
    static let others = [("deploy", "{}"), ("what", "1")]
}
