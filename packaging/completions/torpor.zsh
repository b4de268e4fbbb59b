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
            'status:Shows everything about apps; all of them if none is named.'
            'top:Shows all apps on the whole screen, as they change, and acts on them.'
            'logs:Shows what apps wrote; all of them if none is named.'
            'events:Shows what happened and why.'
            'history:Shows what happened to apps and why, over restarts and boots; the newest last.'
            'report:Shows termination reports: why apps ended when nobody had asked for it.'
            'snapshot:Shows what an app showed when it was in the background last: a picture or a text.'
            'graph:Shows which apps need which.'
            'memory:Shows who has how much memory, and who would go next if it were short, and why.'
            'timers:Shows when timers wake apps next, and when they did last.'
            'mailbox:Shows what waits to be told to an app.'
            'settings:Shows or changes the settings of an app.'
            'unhandled:Shows messages that no app handled, or that ended the app that was told them.'
            'transfers:Shows or cancels what is downloaded and uploaded for apps while they sleep.'
            'data:Shows what the data folders of apps take, or removes what is in them.'
            'health:Says whether all is well, for probes; 1 if it is not.'
            'metrics:Shows everything in numbers, for Prometheus and others.'
            'start:Launches apps into the foreground.'
            'stop:Terminates apps: they are told, then SIGTERM, then SIGKILL after the grace.'
            'restart:Terminates apps and launches them again.'
            'foreground:Brings apps to the foreground.'
            'open:Opens a URL or a file with the app that is for it.'
            'background:Takes apps to the background.'
            'suspend:Stops the processes of apps and keeps them in memory.'
            'resume:Lets suspended apps run on, in the background.'
            'interrupt:Makes active apps inactive: user events are withheld from them.'
            'scene:Opens scenes of a template, disconnects, discards and shows them.'
            'hold:Keeps apps from being suspended when they are in the background.'
            'force-quit:Ends apps by SIGKILL, without telling them; no event launches them again.'
            'signal:Sends a signal to the main process of apps.'
            'post:Tells an app something about a topic, now or when it wakes.'
            'reset:Clears ‘failed’ and the restart count of apps.'
            'wait:Returns when the apps are in a state.'
            'init:Writes a first torpor.toml.'
            'import:Translates another supervisor'\''s configuration.'
            'check:Validates a configuration, without a supervisor.'
            'apply:Reads the configuration again; only apps that changed are touched.'
            'policy:Shows the policies in use; makes and checks policies.'
            'doctor:Shows what this machine offers, what it lacks and what that costs.'
            'upgrade:Puts the programs on disk in charge, in place of the running supervisor.'
            'app:Verbs for the scripts and programs of an app: its lifecycle, tasks, state and topics.'
            'help:Show subcommand help information.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        list|status|top|logs|events|history|report|snapshot|graph|memory|timers|mailbox|settings|unhandled|transfers|data|health|metrics|start|stop|restart|foreground|open|background|suspend|resume|interrupt|scene|hold|force-quit|signal|post|reset|wait|init|import|check|apply|policy|doctor|upgrade|app|help)
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
        '--scenes[Show each scene of a template.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_top() {
    local -i ret=1
    local -ar arg_specs=(
        '(--delay -d)'{--delay,-d}'[Read that often; 1s if it is not given.]:duration:'
        '--once[Write one picture as plain text, and end.]'
        '--json[With --once\: one JSON document on standard output.]'
        '--ascii[Draw with ASCII only, which is the default where the locale is not one of UTF-8.]'
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
        '(--follow -f)'{--follow,-f}'[Go on with what comes from now on.]'
        '(-n --lines)'{-n,--lines}'[So many of the last lines.]:lines:'
        '--since[From that time\: so long ago (10min, '\''2 hours ago'\''), boot, yesterday, 14\:04, or 2026-01-31T12\:34\:56 (with Z\: UTC).]:time:'
        '--grep[Only lines that contain this.]:text:'
        '(-t --times)'{-t,--times}'[Show the time of each line.]'
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(-n --lines)'{-n,--lines}'[So many of the last events.]:lines:'
        '(--follow -f)'{--follow,-f}'[Go on with what happens from now on.]'
        '--since[From that time\: so long ago (10min, '\''2 hours ago'\''), boot, yesterday, 14\:04, or 2026-01-31T12\:34\:56 (with Z\: UTC).]:time:'
        '--otlp[As traces of OpenTelemetry (OTLP/JSON, a line each)\: a run of an app is a trace, its states are spans.]'
        '--record[Record for policies into a file; - is standard output.]:file:_files'
        '--for[Record so long.]:duration:'
        '--every[Record fresh measurements that often; 1s if it is not given.]:duration:'
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(-n --lines)'{-n,--lines}'[So many of the last events; 100, if nothing says where to begin.]:lines:'
        '--since[From that time\: so long ago (10min, '\''2 hours ago'\''), boot, yesterday, 14\:04, or 2026-01-31T12\:34\:56 (with Z\: UTC).]:time:'
        '--until[Before that time.]:time:'
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(-n --lines)'{-n,--lines}'[So many of the newest reports.]:lines:'
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--save[For a process of an app\: its snapshot, or - for standard input.]:file:_files'
        '--scene[Scene inside the app, instead of the app itself.]:name:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--dot[For graphviz.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
        '(-): :->command'
        '(-)*:: :->arg'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0
    case "${state}" in
    command)
        local -ar subcommands=(
            'rehearse:Shows, one after the other, the steps that would be taken if memory were short; takes none of them.'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--take[What is shown does not wait any more.]'
        '*--drop[Only that of this number, which does not wait any more.]:id:'
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '*--unset[Give the setting its default again.]:key:'
        '--file[Read changes from a file\: lines of KEY=VALUE, or a JSON object.]:file:_files'
        '--stdin[Read the value of the setting from standard input.]:key:'
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--follow -f)'{--follow,-f}'[Go on with what nobody handles from now on.]'
        '--show[What that of this number says, as JSON.]:id:'
        '*--replay[Have that of this number told again.]:id:'
        '--to[The app that is told it, in place of the one that it was sent to.]:app:{__torpor_custom_complete ---completion unhandled -- --to "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '*--drop[Keep that of this number no longer.]:id:'
        '--drop-all[Keep none of the apps any longer.]'
        '--utc[Show and read times in UTC, and not in the local time zone.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--follow -f)'{--follow,-f}'[Show them again each second; with --json, a line for each that changed.]'
        '*--cancel[Cancel the transfer of this number, or forget one that is over; once for each.]:id:'
        '--cancel-all[Cancel all transfers of the apps.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--purge[Remove the data of the apps, which must not run.]'
        '*--only[Remove what is in this folder alone\: documents, library, caches or tmp.]:folder:{__torpor_complete "${___only[@]}"}'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--format[openmetrics, or prometheus for its older text format.]:format:{__torpor_complete "${___format[@]}"}'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--force[Although a policy is against it.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--url[What the app shall open there; for apps with a delegate.]:url:'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--type[Media type of the file, in place of the one that its name says.]:type:'
        '--which[Show the apps that open it, the one that would be chosen first, and open nothing.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--force[Suspend even if something holds the app, or an app in use requires it.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
            'open:Brings a scene to the foreground, and makes it where there is none of that name.'
            'disconnect:Ends scenes that are in the background or suspended, and keeps what they are.'
            'discard:Ends scenes, and removes everything of them.'
            'list:Shows the scenes of a template, or of all.'
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
        '--session[What the scene is told, an object of JSON of at most 4 KiB.]:json:'
        '--background[Launch it into the background.]'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--for[How long, such as 10m.]:duration:'
        '--reason[Why; it is shown with the app.]:text:'
        '--end[End all holds of the apps.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--payload[What it says\: JSON, @FILE with JSON, or - for standard input.]:json:'
        '--coalesce[How it becomes one with what waits of the topic\: all, latest, count, merge or net; else as the app says.]:how:{__torpor_complete "${___coalesce[@]}"}'
        '--key[What of the topic it is about\: only what has the same key becomes one.]:key:'
        '--urgent[Wake the app for it.]'
        '--no-wake[Wait until the app wakes anyway, also where its configuration says urgent.]'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--for[The state\: not-running, inactive, active, background, suspended.]:state:{__torpor_complete "${___for[@]}"}'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--yes -y)'{--yes,-y}'[Ask nothing\: take what is found.]'
        '--force[Write over a torpor.toml that is there.]'
        '--json[One JSON document on standard output.]'
        '--version[Show the version.]'
        '(-h --help)'{-h,--help}'[Show help information.]'
    )
    _arguments -w -s -S : "${arg_specs[@]}" && ret=0

    return "${ret}"
}

_torpor_import() {
    local -i ret=1
    local -ar ___from=('procfile' 'supervisord' 'compose' 'pm2' 's6' 'runit' 'systemd')
    local -ar arg_specs=(
        ':path:_files'
        '--from[What it is\: procfile, supervisord, compose, pm2, s6, runit, systemd.]:kind:{__torpor_complete "${___from[@]}"}'
        '(--output -o)'{--output,-o}'[The file to write; else standard output.]:file:_files'
        '--env[PM2\: the environment, whose env_NAME is taken.]:name:'
        '--force[Write over a file that is there.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--restart[Launch anew what runs with old values, in order of dependency.]'
        '*:app:{__torpor_custom_complete ---completion apply -- positional@0 "${current_word_index}" "$(__torpor_cursor_index_in_current_word)"}'
        '--no-wait[Return as soon as the supervisor has the request.]'
        '--timeout[The longest time to wait, such as 10s.]:duration:'
        '--socket[The supervisor'\''s control socket.]:path:_files'
        '--json[One JSON document on standard output (an object a line for streams).]'
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
            'check:Finds out whether a policy can be relied on.'
            'simulate:Finds out what a policy would have done in a recording.'
            'reload:Opens a policy'\''s library anew.'
            'order:Shows whom the policies would end first if memory were short, and why.'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '--c[In C.]'
        '--kit[Torpor'\''s policy kit.]:path:_files -/'
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
        '--questions[How many questions the check of its memory asks.]:number:'
        '--deadline[The deadline that the policy is to have.]:duration:'
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
        '--trace[The recording.]:file:_files'
        '--policy[The library.]:lib:_files -g '\''*.so'\'''
        '--utc[Show and read times in UTC, and not in the local time zone.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
        '(--verbose -v)'{--verbose,-v}'[Say on standard error what goes on with the supervisor, such as its replacement.]'
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
            'delegate:Hears the app'\''s lifecycle for a script, or for a program that knows nothing of it.'
            'task:Background tasks, for the scripts of an app.'
            'state:The app'\''s saved state, for the scripts of an app.'
            'subscribe:Has an app take what is posted to it of a topic, for the scripts of an app.'
            'can-open:Tells whether another app opens URLs of a scheme.'
            'transfer:Downloads and uploads that go on while the app sleeps, for the scripts of an app.'
        )
        _describe -V subcommand subcommands && ret=0
        ;;
    arg)
        case "${words[1]}" in
        delegate|task|state|subscribe|can-open|transfer)
            "_torpor_app_${words[1]}" && ret=0
            ;;
        esac
        ;;
    esac

    return "${ret}"
}

_torpor_app_delegate() {
    local -i ret=1
    local -ar ___on=('willFinishLaunching=' 'restoreState=' 'didFinishLaunching=' 'openURL=' 'didBecomeActive=' 'willResignActive=' 'didEnterBackground=' 'willEnterForeground=' 'resumed=' 'willTerminate=' 'didReceiveMemoryWarning=' 'taskExpiring=' 'settingsDidChange=' 'identityDidChange=' 'significantTimeChange=' 'performFetch=' 'didReceiveEvent=' 'didReceiveNotification=' 'didReceiveRemoteNotification=' 'protectedDataWillBecomeUnavailable=' 'protectedDataDidBecomeAvailable=' 'handleEventsForBackgroundTransfer=' 'transferDidFinish=' 'transferNeedsLogin=' 'sceneWillConnect=' 'sceneDidBecomeActive=' 'sceneWillResignActive=' 'sceneDidEnterBackground=' 'sceneWillEnterForeground=' 'sceneDidDisconnect=' 'didDiscardScenes=')
    local -ar arg_specs=(
        '*--on[A command for a message; * for those that have none.]:message=command:{__torpor_complete "${___on[@]}"}'
        '--answers[Read the answers from standard input.]'
        '--json[One JSON object a line for each message.]'
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
        '--name[What the task is called; the command'\''s name if none is given.]:name:'
        '--stop-before[How long before the time is used up the command gets SIGTERM; none\: never.]:stop-before:'
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
            'restore:Writes what was saved to a file; 3 if there is nothing to restore at this launch.'
            'discard:Forgets what was saved.'
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
        '--coalesce[all, latest, count, merge or net.]:how:{__torpor_complete "${___coalesce[@]}"}'
        '--urgent[Each wakes the app.]'
        '--wake[How what is urgent wakes it\: background, foreground or none.]:how:{__torpor_complete "${___wake[@]}"}'
        '--keep[It waits until it is taken, also where a signal tells of it.]'
        '--end[End it.]'
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
            'get:Has a file downloaded; prints the transfer'\''s number.'
            'put:Has a file uploaded; prints the transfer'\''s number.'
            'list:Shows the app'\''s transfers.'
            'cancel:Cancels a transfer, and removes what is there of the file.'
            'login:Answers a server that asks a transfer for a login; the password is read from standard input.'
            'wait:Returns when no transfer of the app, or of a session, is under way; exits 1 if one failed.'
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
        '--sha256[The sum that the file must have.]:hex:'
        '--session[The name of the transfers that belong together.]:name:'
        '*'{-H,--header}'[Send this header field.]:name\: value:'
        '--discretionary[Wait for a good moment\: memory, battery, load and the time of the day.]'
        '--no-events[Do not wake or launch the app when the session is over.]'
        '--priority[Come before the app'\''s transfers with a lower one.]:number:'
        '--wait[Return when the transfer is over; exit 1 if it failed.]'
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
        '--method[PUT or POST.]:method:'
        '--retry[Try a POST again, though the server may have taken it already.]'
        '--session[The name of the transfers that belong together.]:name:'
        '*'{-H,--header}'[Send this header field.]:name\: value:'
        '--discretionary[Wait for a good moment\: memory, battery, load and the time of the day.]'
        '--no-events[Do not wake or launch the app when the session is over.]'
        '--priority[Come before the app'\''s transfers with a lower one.]:number:'
        '--wait[Return when the transfer is over; exit 1 if it failed.]'
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
        '--session[Only those of this session.]:name:'
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
        '--user[The name at the server.]:user:'
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
        '--session[Only those of this session.]:name:'
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
