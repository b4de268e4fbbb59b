// SPDX-License-Identifier: Apache-2.0

/// The variables by which systemd tells the commands of `ExecStopPost=`, and those of the units of `OnFailure=` with the
/// prefix MONITOR_, how the service ended.
enum SystemdEnding {
    private static let names = ["SERVICE_RESULT", "EXIT_CODE", "EXIT_STATUS"]

    /// Whether the command, or the script that it runs, uses one of the variables.
    static func isUsed(by words: [String], _ tree: SourceTree) -> Bool { mentions(words, names, tree) }

    /// Whether one of the names is in the command, or in the script that it runs.
    static func mentions(_ words: [String], _ names: [String], _ tree: SourceTree) -> Bool {
        func isNamed(in text: String) -> Bool { names.contains { text.contains($0) } }
        if words.contains(where: isNamed) { return true }
        return words.prefix(2).contains { $0.hasPrefix("/") && tree.text($0).map(isNamed) ?? false }
    }

    /// A command in which a shell makes the variables of those that Torpor sets, and then runs the given command.
    static func translated(_ command: [String]) -> [String] { ["/bin/sh", "-c", script] + command }

    private static let script = """
        case $TORPOR_EXIT_REASON in
        exit-failure) SERVICE_RESULT=exit-code;;
        signal|core-dump|watchdog|oom-kill) SERVICE_RESULT=$TORPOR_EXIT_REASON;;
        memory-limit) SERVICE_RESULT=oom-kill;;
        *-deadline|unresponsive|task-expired) SERVICE_RESULT=timeout;;
        launch-failed) SERVICE_RESULT=resources;;
        unknown|wake-storm|lock-while-suspending) SERVICE_RESULT=protocol;;
        *) SERVICE_RESULT=success;;
        esac
        case $TORPOR_EXIT_STATUS in
        SIG*) EXIT_CODE=killed EXIT_STATUS=${TORPOR_EXIT_STATUS#SIG};;
        *) EXIT_CODE=exited EXIT_STATUS=$TORPOR_EXIT_STATUS;;
        esac
        if [ "$SERVICE_RESULT" = core-dump ]; then EXIT_CODE=dumped; fi
        MONITOR_SERVICE_RESULT=$SERVICE_RESULT MONITOR_EXIT_CODE=$EXIT_CODE MONITOR_EXIT_STATUS=$EXIT_STATUS
        export SERVICE_RESULT EXIT_CODE EXIT_STATUS MONITOR_SERVICE_RESULT MONITOR_EXIT_CODE MONITOR_EXIT_STATUS
        exec "$0" "$@"
        """
}
