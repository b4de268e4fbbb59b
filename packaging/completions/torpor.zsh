#compdef torpor

__torpor_complete() {
    local -ar non_empty_completions=("${@:#(|:*)}")
    local -ar empty_completions=("${(M)@:#(|:*)}")
    _describe -V '' non_empty_completions -- empty_completions -P $'\'\''
}

__torpor_custom_complete() {
    local -a completions
    completions=("${(@f)"$("${command_name}" "${@}" "${command_line[@]}")"}")
    if [[ "${#completions[@]}" -gt 1 ]]; then
        __torpor_complete "${completions[@]:0:-1}"
    fi
}

__torpor_cursor_index_in_current_word() {
    if [[ -z "${QIPREFIX}${IPREFIX}${PREFIX}" ]]; then
        printf 0
    else
        printf %s "${#${(z)LBUFFER}[-1]}"
    fi
}

_torpor() {
    emulate -RL zsh -G
    setopt extendedglob nullglob numericglobsort
    unsetopt aliases banghist

    local -xr SAP_SHELL=zsh
    local -x SAP_SHELL_VERSION
    SAP_SHELL_VERSION="$(builtin emulate zsh -c 'printf %s "${ZSH_VERSION}"')"
    local -r SAP_SHELL_VERSION

    local context state state_descr line
    local -A opt_args

    local -r command_name="${words[1]}"
    local -ar command_line=("${words[@]}")
    local -ir current_word_index="$((CURRENT - 1))"

    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'list:Shows apps, a line each; all of them if none is named.'
            'status:Shows everything about apps, or a line for each if none is named.'
            'top:Shows all apps live on the whole screen; keys act on them.'
            'logs:Shows what apps wrote; all of them if none is named.'
            'events:Shows what happened and why.'
            'history:Shows what happened to apps and why, across restarts and boots, newest last.'
            'report:Shows termination reports: why apps ended unexpectedly.'
            'snapshot:Shows an app'\''s last snapshot from the background: a picture or a text.'
            'graph:Shows the dependencies between apps.'
            'memory:Shows how much memory apps have, and which would be ended next if it were short, and why.'
            'timers:Shows when timers wake apps next, and when they did last.'
            'mailbox:Shows the messages that wait for an app.'
            'settings:Shows or changes the settings of an app.'
            'permissions:Shows what sandboxed apps ask for and why, or answers them.'
            'protect:Locks and unlocks the protected folders of apps, or shows them.'
            'unhandled:Shows messages that no app handled, or that crashed the app that got them.'
            'transfers:Shows or cancels the downloads and uploads that run while apps sleep.'
            'alerts:Shows, answers or cancels the alerts of apps.'
            'data:Shows how much space the data folders of apps take, or empties them.'
            'health:Checks whether all is well, for probes; exits with 1 if not.'
            'metrics:Shows metrics, for Prometheus and others.'
            'start:Launches apps into the foreground.'
            'stop:Terminates apps: notifies them, then sends SIGTERM, and SIGKILL after the grace.'
            'restart:Terminates apps and launches them again.'
            'foreground:Brings apps to the foreground.'
            'open:Opens a URL or a file with the app that fits best.'
            'activity:Shows what users are doing in apps, and continues it elsewhere.'
            'background:Sends apps to the background.'
            'suspend:Stops the processes of apps and keeps them in memory.'
            'resume:Resumes suspended apps in the background.'
            'interrupt:Makes active apps inactive, so that they get no user events.'
            'scene:Opens, disconnects, discards and shows the scenes of a template.'
            'hold:Keeps apps from being suspended when they are in the background.'
            'own:Says that this machine owns apps, so that it may launch and wake them.'
            'disown:Says that this machine does not own apps: they are suspended, and nothing launches or wakes them.'
            'move:Moves an app to another machine, with its saved state and its mail.'
            'state:Exports and imports the state that an app saved, with its mail.'
            'force-quit:Ends apps by SIGKILL, without telling them; no event launches them again.'
            'signal:Sends a signal to the main process of apps.'
            'post:Sends an app a message on a topic, now or when it wakes.'
            'notify:Shows people an alert of an app, now, later or again and again.'
            'badge:Shows a number at an app'\''s entry, in lists and on the desktop.'
            'reset:Clears ‘failed’ and the restart count of apps.'
            'wait:Waits until apps are in a state.'
            'init:Writes a first torpor.toml.'
            'import:Translates another supervisor'\''s configuration.'
            'check:Validates a configuration, without a supervisor.'
            'apply:Reloads the configuration; touches only apps that changed.'
            'policy:Shows the policies in use; makes and checks policies.'
            'desktop:Puts apps into the menus of a desktop.'
            'bundle:Makes, signs and verifies bundles of apps; lists the installed ones.'
            'install:Installs a signed bundle, or another version of one.'
            'rollback:Makes the version before the installed one the current one.'
            'uninstall:Removes all versions of a bundle.'
            'doctor:Shows what this machine offers, what it lacks and what that costs.'
            'upgrade:Replaces the running supervisor by the programs on disk.'
            'app:Serves an app'\''s scripts and programs: lifecycle, tasks, state, topics, transfers and alerts.'
            'help:Show subcommand help information.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        list|status|top|logs|events|history|report|snapshot|graph|memory|timers|mailbox|settings|permissions|protect|unhandled|transfers|alerts|data|health|metrics|start|stop|restart|foreground|open|activity|background|suspend|resume|interrupt|scene|hold|own|disown|move|state|force-quit|signal|post|notify|badge|reset|wait|init|import|check|apply|policy|desktop|bundle|install|rollback|uninstall|doctor|upgrade|app|help)
            "_torpor_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_list() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion list -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--scenes[Show each scene on its own line.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_status() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion status -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_top() {
    local -i ret=1
    local -ar arg_specs=(
        '(--delay -d)'{--delay,-d}'[Refresh at this interval; 1s if none is named.]:duration:'
        '--once[Print one picture as plain text and exit.]'
        '--json[With --once\: one JSON document on standard output.]'
        '--ascii[Draw with ASCII only (the default outside UTF-8 locales).]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_logs() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion logs -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '(--follow -f)'{--follow,-f}'[Keep showing new lines as they come.]'
        '(-n --lines)'{-n,--lines}'[Show only this many of the last lines, of all apps together; 100 without --since.]:lines:'
        '--since[Show lines from this time on\: 10min or '\''2 hours ago'\'', boot, yesterday, 14\:04, or 2026-01-31T12\:34\:56 (with Z\: UTC).]:time:'
        '--grep[Show only lines that contain this text.]:text:'
        '(-t --times)'{-t,--times}'[Show the time of each line.]'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_events() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion events -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '(-n --lines)'{-n,--lines}'[Show only this many of the last events.]:lines:'
        '(--follow -f)'{--follow,-f}'[Keep showing events as they happen.]'
        '--since[Show events from this time on\: 10min or '\''2 hours ago'\'', boot, yesterday, 14\:04, or 2026-01-31T12\:34\:56 (with Z\: UTC).]:time:'
        '--otlp[Print OpenTelemetry traces (OTLP/JSON, one a line)\: each run of an app is a trace, its states are spans.]'
        '--record[Record for policies to this file; - is standard output.]:file:_files'
        '--for[End the recording after this time.]:duration:'
        '--every[Record measurements at this interval; 1s if none is named.]:duration:'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_history() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion history -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '(-n --lines)'{-n,--lines}'[Show only this many of the last events; 100 without -n and --since.]:lines:'
        '--since[Show events from this time on\: 10min or '\''2 hours ago'\'', boot, yesterday, 14\:04, or 2026-01-31T12\:34\:56 (with Z\: UTC).]:time:'
        '--until[Show events before this time.]:time:'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_report() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion report -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '(-n --lines)'{-n,--lines}'[Show only this many of the newest reports.]:lines:'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_snapshot() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion snapshot -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '(--output -o)'{--output,-o}'[Write it to this file.]:file:_files'
        '--save[Save this file as the calling app'\''s snapshot; - is standard input.]:file:_files'
        '--scene[Scene inside the app, instead of the app itself.]:name:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_graph() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion graph -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--dot[Print the graph as DOT, for Graphviz.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_memory() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'rehearse:Shows the steps that torpord would take if memory were short; takes none of them.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        rehearse)
            "_torpor_memory_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_memory_rehearse() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_timers() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion timers -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_mailbox() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion mailbox -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--take[Remove the messages that are shown.]'
        '*--drop[Show and remove only the message with this number.]:id:'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_settings() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion settings -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '*:key=value:'
        '*--unset[Reset the setting to its default.]:key:'
        '--file[Read changes from a file\: lines of KEY=VALUE, or a JSON object.]:file:_files'
        '--stdin[Read the value of the setting from standard input.]:key:'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_permissions() {
    local -i ret=1
    local -ar _words=('allow' 'deny')
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion permissions -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '*:words:{__torpor_complete "${_words[@]}"}'
        '--reset[Forget the answers, so that those of the configuration count.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_protect() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'status:Shows the protected folders of apps.'
            'lock:Locks protected data; returns when it is locked.'
            'unlock:Unlocks protected data.'
            'init:Makes the keys of protected folders, and prints a recovery key once.'
            'passphrase:Changes the passphrase; the recovery key stays.'
            'move:Encrypts a protected folder that has files already.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        status|lock|unlock|init|passphrase|move)
            "_torpor_protect_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_protect_status() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_protect_lock() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_protect_unlock() {
    local -i ret=1
    local -ar arg_specs=(
        '--pam[Read the password as pam_exec gives it, and unlock for the user in PAM_USER.]'
        '--stdin[Read the passphrase from standard input, up to its first newline or NUL.]'
        '--recovery[Unlock with the recovery key instead of the passphrase.]'
        '*:command:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_protect_init() {
    local -i ret=1
    local -ar arg_specs=(
        '--stdin[Read the passphrase from standard input, up to its first newline or NUL.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_protect_passphrase() {
    local -i ret=1
    local -ar arg_specs=(
        '--stdin[Read the old and the new passphrase from standard input, a line each.]'
        '--recovery[Give the recovery key instead of the old passphrase.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_protect_move() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion protect move -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--stop[End the app first if it runs, and start it again afterwards.]'
        '--decrypt[Move the files out of the encrypted folder, into one that only its mode closes.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_unhandled() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion unhandled -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '(--follow -f)'{--follow,-f}'[Keep showing messages that no app handles, as they come.]'
        '--show[Print the message with this number as JSON.]:id:'
        '*--replay[Deliver the message with this number again.]:id:'
        '--to[Deliver it to this app instead of the one that it was sent to.]:app:{__torpor_custom_complete ---completion unhandled -- --to "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '*--drop[Drop the message with this number.]:id:'
        '--drop-all[Drop all unhandled messages of the apps.]'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_transfers() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion transfers -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--session[Show only the transfers of this session.]:name:'
        '(--follow -f)'{--follow,-f}'[Refresh each second; with --json, print a line for each transfer that changed.]'
        '*--cancel[Cancel the transfer of this number, or forget one that is over; once for each.]:id:'
        '--cancel-all[Cancel all transfers of the apps.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_alerts() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion alerts -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--dismiss[Dismiss the open alert of this id; if it is repeated, it comes again.]:id:'
        '*--cancel[Cancel the alert of this id, open or scheduled; once for each.]:id:'
        '--all[Cancel or dismiss all alerts of the apps.]'
        '--answer[Answer the open alert of this id.]:id:'
        '--action[With --answer\: the id of the alert'\''s action.]:id:'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_data() {
    local -i ret=1
    local -ar ___only=('documents' 'library' 'caches' 'tmp')
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion data -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--purge[Remove the data of the apps, which must not be running.]'
        '*--only[Empty only this folder\: documents, library, caches or tmp.]:folder:{__torpor_complete "${___only[@]}"}'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_health() {
    local -i ret=1
    local -ar ___state=('inactive' 'active' 'background' 'suspended')
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion health -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--state[The state that each APP must be in\: inactive, active, background, suspended.]:state:{__torpor_complete "${___state[@]}"}'
        '--timeout[The longest time to wait for an answer, such as 10s; 5s if none is named.]:timeout:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_metrics() {
    local -i ret=1
    local -ar ___format=('openmetrics' 'prometheus')
    local -ar arg_specs=(
        '--format[The format\: openmetrics, or prometheus for the older text format.]:format:{__torpor_complete "${___format[@]}"}'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_start() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion start -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--background[Launch into the background.]'
        '--standby[Launch only to suspend at once, even an app that this machine does not own.]'
        '--force[Launch even if a policy is against it, or this machine does not own the app.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_stop() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion stop -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--keep-state[Keep the state that the app saved for its next launch.]'
        '--until-boot[Launch the apps again at the next boot, as if they had not been stopped.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_restart() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion restart -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--keep-state[Give the next launch the state that the app saved.]'
        '--force[End the apps even if they could not be launched again.]'
        '--only-running[Leave apps alone that are not meant to run, such as one that a user stopped.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_foreground() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion foreground -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--url[Have the app open this URL; needs a delegate.]:url:'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_open() {
    local -i ret=1
    local -ar arg_specs=(
        ':url|file:_files'
        '--app[Open it with this app.]:app:{__torpor_custom_complete ---completion open -- --app "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--type[The media type of the file, instead of that of its name.]:type:'
        '--which[Show the apps that open it, best match first, and open nothing.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_activity() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'list:Lists what users are doing in apps, the latest first. Also: torpor activities.'
            'continue:Has an app continue what a user is doing in another. Also: torpor continue.'
            'export:Writes an app'\''s activity as a document for another machine.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        list|continue|export)
            "_torpor_activity_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_activity_list() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_activity_continue() {
    local -i ret=1
    local -ar arg_specs=(
        ':type:'
        '--to[The app that continues it.]:app:{__torpor_custom_complete ---completion activity continue -- --to "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--from[The app whose activity it is; else the latest one of the type.]:app:{__torpor_custom_complete ---completion activity continue -- --from "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_activity_export() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion activity export -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--with-state[Include the state that the app has saved, at most 16 MiB.]'
        '(--output -o)'{--output,-o}'[Write it to this file.]:file:_files'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_background() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion background -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_suspend() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion suspend -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--force[Suspend even if a hold or task keeps the app awake, or an app in use requires it.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_resume() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion resume -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_interrupt() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion interrupt -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--end[End an interruption.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_scene() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'open:Brings a scene to the foreground; makes it if there is none of that name.'
            'disconnect:Ends scenes that are in the background or suspended, and keeps all that they have.'
            'discard:Ends scenes and removes all that they have.'
            'list:Shows the scenes of a template, or of all templates.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        open|disconnect|discard|list)
            "_torpor_scene_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_scene_open() {
    local -i ret=1
    local -ar arg_specs=(
        ':template@name:{__torpor_custom_complete ---completion scene open -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--session[The session of the scene, a JSON object of at most 4 KiB.]:json:'
        '--background[Launch it into the background.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_scene_disconnect() {
    local -i ret=1
    local -ar arg_specs=(
        '*:scene:{__torpor_custom_complete ---completion scene disconnect -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_scene_discard() {
    local -i ret=1
    local -ar arg_specs=(
        '*:scene:{__torpor_custom_complete ---completion scene discard -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_scene_list() {
    local -i ret=1
    local -ar arg_specs=(
        ':template:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_hold() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion hold -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--for[End the hold after this time, such as 10m.]:duration:'
        '--reason[The reason, which is shown with the app.]:text:'
        '--end[End all holds of the apps.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_own() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion own -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--for[Own the apps for this time, such as 90s, unless this is repeated.]:duration:'
        '--renew[Fail for an app that this machine does not own any more, instead of owning it again.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_disown() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion disown -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--stop[Terminate the apps too; their saved state is kept for the next launch.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_move() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion move -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        ':host:'
        '--ssh[The command that runs commands on the other machine.]:command:'
        '--for[How long the other machine owns the app, unless that is renewed.]:duration:'
        '--timeout[The longest time for each step, default 30s.]:duration:'
        '--dry-run[Check both machines, and say what would be done.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_state() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'export:Writes the app'\''s saved state and its mail to a file, or to standard output.'
            'import:Reads what ‘torpor state export’ wrote, for the next launch of an app that does not run.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        export|import)
            "_torpor_state_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_state_export() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion state export -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '(--output -o)'{--output,-o}'[Write it to this file.]:file:_files'
        '--no-mail[Leave out the messages that wait for the app.]'
        '--no-state[Leave out the state.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_state_import() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion state import -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        ':file:_files'
        '--raw[The file is the state itself, such as one that was set aside, and no export.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_force-quit() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion force-quit -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_signal() {
    local -i ret=1
    local -ar _sig=('HUP' 'SIGHUP' 'INT' 'SIGINT' 'QUIT' 'SIGQUIT' 'USR1' 'SIGUSR1' 'USR2' 'SIGUSR2' 'TERM' 'SIGTERM' 'ABRT' 'SIGABRT' 'WINCH' 'SIGWINCH')
    local -ar arg_specs=(
        ':sig:{__torpor_complete "${_sig[@]}"}'
        ':app:{__torpor_custom_complete ---completion signal -- positional@1 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_post() {
    local -i ret=1
    local -ar ___coalesce=('all' 'latest' 'count' 'merge' 'net')
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion post -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        ':topic:'
        '--payload[The content\: JSON, @FILE with JSON, or - for standard input.]:json:'
        '--coalesce[How to merge it with messages already queued for the topic\: all, latest, count, merge or net; else as the app'\''s configuration says.]:how:{__torpor_complete "${___coalesce[@]}"}'
        '--key[The key within the topic\: only messages with the same key are merged.]:key:'
        '--urgent[Wake the app for it.]'
        '--no-wake[Do not wake the app for it, even if its configuration says urgent.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_notify() {
    local -i ret=1
    local -ar ___urgency=('low' 'normal' 'critical')
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion notify -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        ':title:'
        '--body[More text, at most 1 KiB.]:text:'
        '--at[Show it at this time\: 14\:30 (today or tomorrow), 2026-03-29T14\:30\:00, or that with Z or an offset.]:time:'
        '--after[Show it after this time, such as 10min.]:duration:'
        '--calendar[Show it again and again, as in systemd'\''s timers\: '\''Mon..Fri 9\:55'\''.]:expression:'
        '--time-zone[The time zone of --at, such as Europe/Berlin, or local, the machine'\''s; else TZ, else the machine'\''s.]:zone:'
        '--id[Replace the app'\''s alert of this id.]:id:'
        '--urgency[low, normal or critical; a critical one on the desktop interrupts apps.]:word:{__torpor_complete "${___urgency[@]}"}'
        '--sound[A sound of the XDG sound theme.]:name:'
        '--badge[Show this number at the app'\''s entry, 0 for none.]:number:'
        '*--action[Add a button; at most four.]:id=label:'
        '--url[Open this URL when a person chooses the alert.]:url:'
        '--payload[What the app is told\: JSON, @FILE with JSON, or - for standard input.]:json:'
        '--wake[Also wake or launch the app in the background.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_badge() {
    local -i ret=1
    local -ar arg_specs=(
        ':app:{__torpor_custom_complete ---completion badge -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        ':number:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_reset() {
    local -i ret=1
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion reset -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_wait() {
    local -i ret=1
    local -ar ___for=('not-running' 'inactive' 'active' 'background' 'suspended')
    local -ar arg_specs=(
        '*:app:{__torpor_custom_complete ---completion wait -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--for[The state to wait for\: not-running, inactive, active, background, suspended.]:state:{__torpor_complete "${___for[@]}"}'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_init() {
    local -i ret=1
    local -ar arg_specs=(
        ':directory:_files -/'
        '(--yes -y)'{--yes,-y}'[Ask nothing\: use what is found.]'
        '--force[Overwrite an existing torpor.toml.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_import() {
    local -i ret=1
    local -ar ___from=('procfile' 'supervisord' 'compose' 'pm2' 's6' 'runit' 'systemd' 'quadlet' 'docker-run')
    local -ar arg_specs=(
        '*:path:_files'
        '--from[The kind of PATH\: procfile, supervisord, compose, pm2, s6, runit, systemd, quadlet, docker-run.]:kind:{__torpor_complete "${___from[@]}"}'
        '(--output -o)'{--output,-o}'[The file to write; else standard output.]:file:_files'
        '--env[PM2\: use the environment env_NAME.]:name:'
        '*--profile[Compose\: start the services of this profile with the others; "*" for all. Repeatable.]:name:'
        '--programs[Compose\: translate commands to programs of this machine, without containers.]'
        '--force[Overwrite an existing file.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_check() {
    local -i ret=1
    local -ar arg_specs=(
        ':file:_files -g '\''*.toml'\'''
        '--strict[Fail on warnings too, with exit status 1.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_apply() {
    local -i ret=1
    local -ar arg_specs=(
        '--diff[Only show what would happen, and why.]'
        '--restart[Restart apps that run with old values, and launch changed ones that went down.]'
        '--force[Apply even a configuration without apps, which removes all apps.]'
        '*:app:{__torpor_custom_complete ---completion apply -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_policy() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'list:Shows the policies in use: their state, what they were asked and what they advised.'
            'new:Writes a package with a policy that builds at once.'
            'check:Tests whether a policy is reliable.'
            'simulate:Shows what a policy would have decided in a recording.'
            'reload:Reloads a policy'\''s library.'
            'order:Shows which apps the policies would end first if memory were short, and why.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        list|new|check|simulate|reload|order)
            "_torpor_policy_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_policy_list() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_policy_new() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:'
        ':directory:_files -/'
        '--c[Write the policy in C.]'
        '--kit[The folder of Torpor'\''s policy kit.]:path:_files -/'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_policy_check() {
    local -i ret=1
    local -ar arg_specs=(
        ':library:_files -g '\''*.so'\'''
        '--questions[The number of questions in the memory check.]:number:'
        '--deadline[The deadline for each answer.]:duration:'
        '*--option[Set an option of the policy, its value as in the configuration or as plain text; may be repeated.]:key=value:'
        '--host[The torpor-policy-host program to run.]:path:_files'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_policy_simulate() {
    local -i ret=1
    local -ar arg_specs=(
        '--trace[The recording to replay.]:file:_files'
        '--policy[The policy'\''s library.]:lib:_files -g '\''*.so'\'''
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '*--option[Set an option of the policy, its value as in the configuration or as plain text; may be repeated.]:key=value:'
        '--host[The torpor-policy-host program to run.]:path:_files'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_policy_reload() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_policy_order() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_desktop() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'sync:Writes a desktop entry for each app that has a title, and removes those of apps that are gone.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        sync)
            "_torpor_desktop_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_desktop_sync() {
    local -i ret=1
    local -ar arg_specs=(
        '--user[Write entries for this user, into $XDG_DATA_HOME/applications.]'
        '--system[Write entries for all users, into /usr/local/share/applications.]'
        '--folder[Write entries into this folder.]:folder:_files -/'
        '--all[Include apps without a title and oneshots.]'
        '--dry-run[Show what would change, and change nothing.]'
        '--config[Take the apps from this configuration instead of a running supervisor.]:file:_files -g '\''*.toml'\'''
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_bundle() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'build:Makes NAME-VERSION.torpor of a directory with a manifest.toml.'
            'sign:Puts a signature into a bundle, in place of one that is there.'
            'verify:Compares a bundle with its signature: every file of it is read.'
            'list:Lists the installed bundles.'
            'keygen:Makes a pair of keys: NAME.key to sign with, NAME.pub for those who trust it.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        build|sign|verify|list|keygen)
            "_torpor_bundle_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_bundle_build() {
    local -i ret=1
    local -ar arg_specs=(
        ':directory:_files -/'
        '--output[Write to this file.]:file:_files'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_bundle_sign() {
    local -i ret=1
    local -ar arg_specs=(
        ':file:_files -g '\''*.torpor'\'''
        '--key[Sign with this secret key.]:file:_files'
        '--signature[Put this existing signature into the bundle.]:file:_files'
        '--comment[A line that the signature covers, and that users see.]:text:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_bundle_verify() {
    local -i ret=1
    local -ar arg_specs=(
        ':bundle:_files -g '\''*.torpor'\'''
        '--bundles[The folder of the installed bundles, STATE/bundles.]:folder:_files -/'
        '--keys[The folder of the trusted keys, keys beside torpor.toml.]:folder:_files -/'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_bundle_list() {
    local -i ret=1
    local -ar arg_specs=(
        '--bundles[The folder of the installed bundles, STATE/bundles.]:folder:_files -/'
        '--keys[The folder of the trusted keys, keys beside torpor.toml.]:folder:_files -/'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_bundle_keygen() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:_files'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_install() {
    local -i ret=1
    local -ar arg_specs=(
        ':file:_files -g '\''*.torpor'\'''
        '--force[Install even if the version is lower than the installed one.]'
        '--bundles[The folder of the installed bundles, STATE/bundles.]:folder:_files -/'
        '--keys[The folder of the trusted keys, keys beside torpor.toml.]:folder:_files -/'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_rollback() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:'
        '--bundles[The folder of the installed bundles, STATE/bundles.]:folder:_files -/'
        '--keys[The folder of the trusted keys, keys beside torpor.toml.]:folder:_files -/'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_uninstall() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:'
        '--purge[Remove the data of the bundle’s apps too, which must not be running.]'
        '--bundles[The folder of the installed bundles, STATE/bundles.]:folder:_files -/'
        '--keys[The folder of the trusted keys, keys beside torpor.toml.]:folder:_files -/'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_doctor() {
    local -i ret=1
    local -ar arg_specs=(
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_upgrade() {
    local -i ret=1
    local -ar arg_specs=(
        '--timeout[The longest time to wait, such as 10s; 30s if none is named.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Report supervisor restarts and upgrades on standard error.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'delegate:Answers the app'\''s lifecycle messages for a script, or for a program that cannot.'
            'task:Runs, begins, ends or shows background tasks, for an app'\''s scripts.'
            'state:Saves, restores or discards the app'\''s state, for an app'\''s scripts.'
            'subscribe:Subscribes the app to a topic, for an app'\''s scripts.'
            'can-open:Checks whether another app opens URLs of a scheme.'
            'transfer:Downloads and uploads files for an app'\''s scripts, even while the app sleeps.'
            'notify:Shows people an alert of the app, now, later or again and again.'
            'alerts:Shows or cancels the app'\''s alerts.'
            'badge:Shows a number at the app'\''s entry, in lists and on the desktop.'
            'permissions:Shows what the app may do in its sandbox.'
            'request-permission:Has people asked for a permission of the app.'
            'activity:Says what a user is doing in the app, so that it can be continued elsewhere.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        delegate|task|state|subscribe|can-open|transfer|notify|alerts|badge|permissions|request-permission|activity)
            "_torpor_app_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_app_delegate() {
    local -i ret=1
    local -ar ___on=('willFinishLaunching=' 'restoreState=' 'didFinishLaunching=' 'openURL=' 'didBecomeActive=' 'willResignActive=' 'didEnterBackground=' 'willEnterForeground=' 'resumed=' 'willTerminate=' 'didReceiveMemoryWarning=' 'taskExpiring=' 'settingsDidChange=' 'identityDidChange=' 'significantTimeChange=' 'performFetch=' 'didReceiveEvent=' 'didReceiveNotification=' 'didReceiveRemoteNotification=' 'protectedDataWillBecomeUnavailable=' 'protectedDataDidBecomeAvailable=' 'handleEventsForBackgroundTransfer=' 'transferDidFinish=' 'transferNeedsLogin=' 'didReceiveLocalNotification=' 'sceneWillConnect=' 'sceneDidBecomeActive=' 'sceneWillResignActive=' 'sceneDidEnterBackground=' 'sceneWillEnterForeground=' 'sceneDidDisconnect=' 'didDiscardScenes=' 'refresh=' 'willContinueActivity=' 'continueActivity=' 'didFailToContinueActivity=' 'activityWasContinued=')
    local -ar arg_specs=(
        '*--on[Run this command for the message; * is for messages that have none.]:message=command:{__torpor_complete "${___on[@]}"}'
        '--answers[Read the answers from standard input.]'
        '--json[Write each message as a JSON object on a line.]'
        '*:command:'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_task() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'run:Runs a command as a background task.'
            'begin:Begins a background task that ‘torpor app task end’ ends.'
            'end:Ends a background task that ‘torpor app task begin’ began.'
            'list:Shows the app'\''s background tasks.'
            'time:Shows how long the app may still run for its background tasks.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        run|begin|end|list|time)
            "_torpor_app_task_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_app_task_run() {
    local -i ret=1
    local -ar arg_specs=(
        '--name[The task'\''s name; the command'\''s name if none is named.]:name:'
        '--stop-before[Send SIGTERM to the command this long before its time is used up; none\: never.]:stop-before:'
        '*:command:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_task_begin() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_task_end() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_task_list() {
    local -i ret=1
    local -ar arg_specs=(
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_task_time() {
    local -i ret=1
    local -ar arg_specs=(
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_state() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'save:Saves a file as the app'\''s state; returns when it is durable.'
            'restore:Writes the saved state to a file; exits with 3 if there is none to restore at this launch.'
            'discard:Discards the saved state.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        save|restore|discard)
            "_torpor_app_state_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_app_state_save() {
    local -i ret=1
    local -ar arg_specs=(
        ':file:_files'
        '--scene[Scene inside the app, instead of the app itself.]:name:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_state_restore() {
    local -i ret=1
    local -ar arg_specs=(
        ':file:_files'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_state_discard() {
    local -i ret=1
    local -ar arg_specs=(
        '--scene[Scene inside the app, instead of the app itself.]:name:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_subscribe() {
    local -i ret=1
    local -ar ___coalesce=('all' 'latest' 'count' 'merge' 'net')
    local -ar ___wake=('background' 'foreground' 'none')
    local -ar arg_specs=(
        ':topic:'
        '--coalesce[How to merge queued messages\: all, latest, count, merge or net.]:how:{__torpor_complete "${___coalesce[@]}"}'
        '--urgent[Wake the app for each message.]'
        '--wake[How urgent messages wake the app\: background, foreground or none.]:how:{__torpor_complete "${___wake[@]}"}'
        '--keep[Keep each message until the app takes it, even if a signal announced it.]'
        '--end[End the subscription.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_can-open() {
    local -i ret=1
    local -ar arg_specs=(
        ':scheme:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_transfer() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'get:Downloads a file in the background; prints the transfer'\''s number.'
            'put:Uploads a file in the background; prints the transfer'\''s number.'
            'list:Shows the app'\''s transfers.'
            'cancel:Cancels a transfer and removes its partial file.'
            'login:Answers a server'\''s request for a login; reads the password from standard input.'
            'wait:Waits until no transfer of the app, or of a session, is under way; exits with 1 if one failed.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        get|put|list|cancel|login|wait)
            "_torpor_app_transfer_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_app_transfer_get() {
    local -i ret=1
    local -ar arg_specs=(
        ':url:'
        ':file:'
        '--sha256[The SHA-256 checksum that the file must have.]:hex:'
        '--session[The session, a name for transfers that belong together.]:name:'
        '*'{-H,--header}'[Send this header field.]:name\: value:'
        '--discretionary[Wait until memory, battery, load and time of day are favourable.]'
        '--no-events[Do not wake or launch the app when the session is over.]'
        '--priority[Run before the app'\''s transfers with a lower priority.]:number:'
        '--wait[Wait until the transfer is over; exit with 1 if it failed.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_transfer_put() {
    local -i ret=1
    local -ar arg_specs=(
        ':file:_files'
        ':url:'
        '--method[The HTTP method, PUT or POST.]:method:'
        '--retry[Retry a POST even if the server may have accepted it already.]'
        '--session[The session, a name for transfers that belong together.]:name:'
        '*'{-H,--header}'[Send this header field.]:name\: value:'
        '--discretionary[Wait until memory, battery, load and time of day are favourable.]'
        '--no-events[Do not wake or launch the app when the session is over.]'
        '--priority[Run before the app'\''s transfers with a lower priority.]:number:'
        '--wait[Wait until the transfer is over; exit with 1 if it failed.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_transfer_list() {
    local -i ret=1
    local -ar arg_specs=(
        '--session[Show only the transfers of this session.]:name:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_transfer_cancel() {
    local -i ret=1
    local -ar arg_specs=(
        ':id:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_transfer_login() {
    local -i ret=1
    local -ar arg_specs=(
        ':id:'
        '--user[The user name for the login.]:user:'
        '--header[Read a whole Authorization field from standard input instead.]'
        '--cancel[Give up\: the transfer fails.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_transfer_wait() {
    local -i ret=1
    local -ar arg_specs=(
        '--session[Wait only for the transfers of this session.]:name:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_notify() {
    local -i ret=1
    local -ar ___urgency=('low' 'normal' 'critical')
    local -ar arg_specs=(
        ':title:'
        '--body[More text, at most 1 KiB.]:text:'
        '--at[Show it at this time\: 14\:30 (today or tomorrow), 2026-03-29T14\:30\:00, or that with Z or an offset.]:time:'
        '--after[Show it after this time, such as 10min.]:duration:'
        '--calendar[Show it again and again, as in systemd'\''s timers\: '\''Mon..Fri 9\:55'\''.]:expression:'
        '--time-zone[The time zone of --at, such as Europe/Berlin, or local, the machine'\''s; else TZ, else the machine'\''s.]:zone:'
        '--id[Replace the app'\''s alert of this id.]:id:'
        '--urgency[low, normal or critical; a critical one on the desktop interrupts apps.]:word:{__torpor_complete "${___urgency[@]}"}'
        '--sound[A sound of the XDG sound theme.]:name:'
        '--badge[Show this number at the app'\''s entry, 0 for none.]:number:'
        '*--action[Add a button; at most four.]:id=label:'
        '--url[Open this URL when a person chooses the alert.]:url:'
        '--payload[What the app is told\: JSON, @FILE with JSON, or - for standard input.]:json:'
        '--wake[Also wake or launch the app in the background.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_alerts() {
    local -i ret=1
    local -ar arg_specs=(
        '*--cancel[Cancel the alert of this id; once for each.]:id:'
        '--all[Cancel all alerts of the app.]'
        '--utc[Show and read times in UTC instead of the local time zone.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_badge() {
    local -i ret=1
    local -ar arg_specs=(
        ':number:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_permissions() {
    local -i ret=1
    local -ar arg_specs=(
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_request-permission() {
    local -i ret=1
    local -ar arg_specs=(
        ':name:'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_activity() {
    local -i ret=1
    local -ar arg_specs=(
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'set:Sets the current activity of the app, which must be in the foreground.'
            'end:Ends the current activity of the app.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        set|end)
            "_torpor_app_activity_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_app_activity_set() {
    local -i ret=1
    local -ar arg_specs=(
        ':type:'
        '--title[What people see in the list of activities.]:text:'
        '--payload[The content\: a JSON object, @FILE, or - for standard input.]:json:'
        '--url[A URL that stands for the activity.]:url:'
        '--state[The activity can only be continued with the app'\''s saved state, which an export then includes.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_app_activity_end() {
    local -i ret=1
    local -ar arg_specs=(
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_help() {
    local -i ret=1
    local -ar arg_specs=(
        '*:subcommands:'
        '--version[Show the version.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

if [[ "${funcstack[1]}" = _torpor ]]; then
    _torpor "${@}"
else
    compdef _torpor torpor
fi
