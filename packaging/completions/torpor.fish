function __torpor_should_offer_completions_for_flags_or_options -a expected_commands
    set -l non_repeating_flags_or_options $argv[2..]
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __torpor_parse_tokens
    test "$commands" = "$expected_commands"; and return $non_repeating_flags_or_options_absent
end

function __torpor_should_offer_completions_for_positional -a expected_commands positional_index_comparison expected_positional_index
    set -l non_repeating_flags_or_options
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __torpor_parse_tokens
    test "$commands" = "$expected_commands" -a \( "$positional_index" "$positional_index_comparison" "$expected_positional_index" \)
end

function __torpor_parse_tokens -S
    set -l unparsed_tokens (__torpor_tokens -pc)
    switch $unparsed_tokens[1]
    case 'torpor'
        __torpor_parse_subcommand 0 'version' 'h/help'
        switch $unparsed_tokens[1]
        case 'list'
            __torpor_parse_subcommand -r 1 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'status'
            __torpor_parse_subcommand -r 1 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'top'
            __torpor_parse_subcommand 0 'd/delay=' 'once' 'json' 'ascii' 'socket=' 'version' 'h/help'
        case 'logs'
            __torpor_parse_subcommand -r 1 'f/follow' 'n/lines=' 'since=' 'grep=' 't/times' 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'events'
            __torpor_parse_subcommand 1 'n/lines=' 'f/follow' 'since=' 'otlp' 'record=' 'for=' 'every=' 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'history'
            __torpor_parse_subcommand 1 'n/lines=' 'since=' 'until=' 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'report'
            __torpor_parse_subcommand 1 'n/lines=' 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'snapshot'
            __torpor_parse_subcommand 1 'o/output=' 'save=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'graph'
            __torpor_parse_subcommand -r 1 'dot' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'memory'
            __torpor_parse_subcommand 0 'socket=' 'json' 'v/verbose' 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'rehearse'
                __torpor_parse_subcommand 0 'socket=' 'json' 'v/verbose' 'version' 'h/help'
            end
        case 'timers'
            __torpor_parse_subcommand -r 1 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'mailbox'
            __torpor_parse_subcommand 1 'take' 'drop=+' 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'settings'
            __torpor_parse_subcommand -r 2 'unset=+' 'file=' 'stdin=' 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'unhandled'
            __torpor_parse_subcommand -r 1 'f/follow' 'show=' 'replay=+' 'to=' 'drop=+' 'drop-all' 'utc' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'data'
            __torpor_parse_subcommand -r 1 'purge' 'only=+' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'health'
            __torpor_parse_subcommand -r 1 'state=' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'metrics'
            __torpor_parse_subcommand 0 'format=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'start'
            __torpor_parse_subcommand -r 1 'background' 'force' 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'stop'
            __torpor_parse_subcommand -r 1 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'restart'
            __torpor_parse_subcommand -r 1 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'foreground'
            __torpor_parse_subcommand -r 1 'url=' 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'open'
            __torpor_parse_subcommand 1 'app=' 'type=' 'which' 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'background'
            __torpor_parse_subcommand -r 1 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'suspend'
            __torpor_parse_subcommand -r 1 'force' 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'resume'
            __torpor_parse_subcommand -r 1 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'interrupt'
            __torpor_parse_subcommand -r 1 'end' 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'hold'
            __torpor_parse_subcommand -r 1 'for=' 'reason=' 'end' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'force-quit'
            __torpor_parse_subcommand -r 1 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'signal'
            __torpor_parse_subcommand 2 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'post'
            __torpor_parse_subcommand 2 'payload=' 'coalesce=' 'key=' 'urgent' 'no-wake' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'reset'
            __torpor_parse_subcommand -r 1 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'wait'
            __torpor_parse_subcommand -r 1 'for=' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'init'
            __torpor_parse_subcommand 1 'y/yes' 'force' 'json' 'version' 'h/help'
        case 'import'
            __torpor_parse_subcommand 1 'from=' 'o/output=' 'env=' 'force' 'json' 'version' 'h/help'
        case 'check'
            __torpor_parse_subcommand 1 'strict' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'apply'
            __torpor_parse_subcommand -r 1 'diff' 'restart' 'no-wait' 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'policy'
            __torpor_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'list'
                __torpor_parse_subcommand 0 'socket=' 'json' 'v/verbose' 'version' 'h/help'
            case 'new'
                __torpor_parse_subcommand 2 'c' 'kit=' 'json' 'version' 'h/help'
            case 'check'
                __torpor_parse_subcommand 1 'questions=' 'deadline=' 'option=+' 'host=' 'json' 'version' 'h/help'
            case 'simulate'
                __torpor_parse_subcommand 0 'trace=' 'policy=' 'utc' 'option=+' 'host=' 'json' 'version' 'h/help'
            case 'reload'
                __torpor_parse_subcommand 1 'socket=' 'json' 'v/verbose' 'version' 'h/help'
            case 'order'
                __torpor_parse_subcommand 0 'socket=' 'json' 'v/verbose' 'version' 'h/help'
            end
        case 'doctor'
            __torpor_parse_subcommand 0 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'upgrade'
            __torpor_parse_subcommand 0 'timeout=' 'socket=' 'json' 'v/verbose' 'version' 'h/help'
        case 'app'
            __torpor_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'delegate'
                __torpor_parse_subcommand -r 1 'on=+' 'answers' 'json' 'version' 'h/help'
            case 'task'
                __torpor_parse_subcommand 0 'version' 'h/help'
                switch $unparsed_tokens[1]
                case 'run'
                    __torpor_parse_subcommand -r 1 'name=' 'stop-before=' 'json' 'version' 'h/help'
                case 'begin'
                    __torpor_parse_subcommand 1 'json' 'version' 'h/help'
                case 'end'
                    __torpor_parse_subcommand 1 'json' 'version' 'h/help'
                case 'list'
                    __torpor_parse_subcommand 0 'json' 'version' 'h/help'
                case 'time'
                    __torpor_parse_subcommand 0 'json' 'version' 'h/help'
                end
            case 'state'
                __torpor_parse_subcommand 0 'version' 'h/help'
                switch $unparsed_tokens[1]
                case 'save'
                    __torpor_parse_subcommand 1 'json' 'version' 'h/help'
                case 'restore'
                    __torpor_parse_subcommand 1 'json' 'version' 'h/help'
                case 'discard'
                    __torpor_parse_subcommand 0 'json' 'version' 'h/help'
                end
            case 'subscribe'
                __torpor_parse_subcommand 1 'coalesce=' 'urgent' 'wake=' 'keep' 'end' 'json' 'version' 'h/help'
            case 'can-open'
                __torpor_parse_subcommand 1 'json' 'version' 'h/help'
            end
        case 'help'
            __torpor_parse_subcommand -r 1 'version'
        end
    end
end

function __torpor_tokens
    if test (string split -m 1 -f 1 -- . "$FISH_VERSION") -gt 3
        commandline --tokens-raw $argv
    else
        commandline -o $argv
    end
end

function __torpor_parse_subcommand -S -a positional_count
    argparse -s r -- $argv
    set -l option_specs $argv[2..]
    set -l is_repeating_positional $_flag_r
    set -el _flag_r
    set -a commands $unparsed_tokens[1]
    set positional_index 0
    while true
        set -e unparsed_tokens[1]
        argparse -sn "$commands" $option_specs -- $unparsed_tokens 2> /dev/null
        set unparsed_tokens $argv
        set positional_index (math $positional_index + 1)
        for non_repeating_flag_or_option in $non_repeating_flags_or_options
            if set -ql "_flag_$(string replace -a - _ -- $non_repeating_flag_or_option)"
                set non_repeating_flags_or_options_absent 1
                break
            end
        end
        test (count $unparsed_tokens) -eq 0 -o \( -z "$is_repeating_positional" -a "$positional_index" -gt "$positional_count" \) && break
    end
end

function __torpor_complete_directories
    set -l token (commandline -t)
    string match -- '*/' $token
    set -l subdirs $token*/
    printf %s\n $subdirs
end

function __torpor_custom_completion
    set -x SAP_SHELL fish
    set -x SAP_SHELL_VERSION $FISH_VERSION
    set -l tokens (__torpor_tokens -p)
    if test -z "$(__torpor_tokens -t)"
        set -l index (count (__torpor_tokens -pc))
        set tokens $tokens[..$index] \'\' $tokens[(math $index + 1)..]
    end
    command $tokens[1] $argv $tokens
end

complete -c 'torpor' -f
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'list' -d 'Shows apps, a line each; all of them if none is named.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'status' -d 'Shows everything about apps; all of them if none is named.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'top' -d 'Shows all apps on the whole screen, as they change, and acts on them.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'logs' -d 'Shows what apps wrote; all of them if none is named.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'events' -d 'Shows what happened and why.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'history' -d 'Shows what happened to apps and why, over restarts and boots; the newest last.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'report' -d 'Shows termination reports: why apps ended when nobody had asked for it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'snapshot' -d 'Shows what an app showed when it was in the background last: a picture or a text.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'graph' -d 'Shows which apps need which.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'memory' -d 'Shows who has how much memory, and who would go next if it were short, and why.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'timers' -d 'Shows when timers wake apps next, and when they did last.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'mailbox' -d 'Shows what waits to be told to an app.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'settings' -d 'Shows or changes the settings of an app.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'unhandled' -d 'Shows messages that no app handled, or that ended the app that was told them.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'data' -d 'Shows what the data folders of apps take, or removes what is in them.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'health' -d 'Says whether all is well, for probes; 1 if it is not.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'metrics' -d 'Shows everything in numbers, for Prometheus and others.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'start' -d 'Launches apps into the foreground.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'stop' -d 'Terminates apps: they are told, then SIGTERM, then SIGKILL after the grace.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'restart' -d 'Terminates apps and launches them again.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'foreground' -d 'Brings apps to the foreground.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'open' -d 'Opens a URL or a file with the app that is for it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'background' -d 'Takes apps to the background.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'suspend' -d 'Stops the processes of apps and keeps them in memory.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'resume' -d 'Lets suspended apps run on, in the background.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'interrupt' -d 'Makes active apps inactive: user events are withheld from them.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'hold' -d 'Keeps apps from being suspended when they are in the background.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'force-quit' -d 'Ends apps by SIGKILL, without telling them; no event launches them again.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'signal' -d 'Sends a signal to the main process of apps.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'post' -d 'Tells an app something about a topic, now or when it wakes.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'reset' -d 'Clears ‘failed’ and the restart count of apps.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'wait' -d 'Returns when the apps are in a state.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'init' -d 'Writes a first torpor.toml.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'import' -d 'Translates another supervisor\'s configuration.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'check' -d 'Validates a configuration, without a supervisor.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'apply' -d 'Reads the configuration again; only apps that changed are touched.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'policy' -d 'Shows the policies in use; makes and checks policies.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'doctor' -d 'Shows what this machine offers, what it lacks and what that costs.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'upgrade' -d 'Puts the programs on disk in charge, in place of the running supervisor.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'app' -d 'Verbs for the scripts and programs of an app: its lifecycle, tasks, state and topics.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor" -eq 1' -fa 'help' -d 'Show subcommand help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor list" -ge 1' -fka '(__torpor_custom_completion ---completion list -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor list" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor list" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor list" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor list" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor list" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor status" -ge 1' -fka '(__torpor_custom_completion ---completion status -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor status" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor status" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor status" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor status" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor status" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor status" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor top" d delay' -l 'delay' -s 'd' -d 'Read that often; 1s if it is not given.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor top" once' -l 'once' -d 'Write one picture as plain text, and end.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor top" json' -l 'json' -d 'With --once: one JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor top" ascii' -l 'ascii' -d 'Draw with ASCII only, which is the default where the locale is not one of UTF-8.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor top" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor top" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor top" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor logs" -ge 1' -fka '(__torpor_custom_completion ---completion logs -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" f follow' -l 'follow' -s 'f' -d 'Go on with what comes from now on.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" lines n' -s 'n' -l 'lines' -d 'So many of the last lines.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" since' -l 'since' -d 'From that time: so long ago (10min, \'2 hours ago\'), boot, yesterday, 14:04, or 2026-01-31T12:34:56 (with Z: UTC).' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" grep' -l 'grep' -d 'Only lines that contain this.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" t times' -s 't' -l 'times' -d 'Show the time of each line.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor logs" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor events" -eq 1' -fka '(__torpor_custom_completion ---completion events -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" lines n' -s 'n' -l 'lines' -d 'So many of the last events.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" f follow' -l 'follow' -s 'f' -d 'Go on with what happens from now on.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" since' -l 'since' -d 'From that time: so long ago (10min, \'2 hours ago\'), boot, yesterday, 14:04, or 2026-01-31T12:34:56 (with Z: UTC).' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" otlp' -l 'otlp' -d 'As traces of OpenTelemetry (OTLP/JSON, a line each): a run of an app is a trace, its states are spans.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" record' -l 'record' -d 'Record for policies into a file; - is standard output.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" for' -l 'for' -d 'Record so long.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" every' -l 'every' -d 'Record fresh measurements that often; 1s if it is not given.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor events" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor history" -eq 1' -fka '(__torpor_custom_completion ---completion history -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" lines n' -s 'n' -l 'lines' -d 'So many of the last events; 100, if nothing says where to begin.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" since' -l 'since' -d 'From that time: so long ago (10min, \'2 hours ago\'), boot, yesterday, 14:04, or 2026-01-31T12:34:56 (with Z: UTC).' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" until' -l 'until' -d 'Before that time.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor history" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor report" -eq 1' -fka '(__torpor_custom_completion ---completion report -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor report" lines n' -s 'n' -l 'lines' -d 'So many of the newest reports.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor report" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor report" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor report" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor report" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor report" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor report" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor snapshot" -eq 1' -fka '(__torpor_custom_completion ---completion snapshot -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor snapshot" o output' -l 'output' -s 'o' -d 'Write it to this file.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor snapshot" save' -l 'save' -d 'For a process of an app: its snapshot, or - for standard input.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor snapshot" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor snapshot" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor snapshot" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor snapshot" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor snapshot" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor graph" -ge 1' -fka '(__torpor_custom_completion ---completion graph -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor graph" dot' -l 'dot' -d 'For graphviz.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor graph" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor graph" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor graph" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor graph" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor graph" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor memory" -eq 1' -fa 'rehearse' -d 'Shows, one after the other, the steps that would be taken if memory were short; takes none of them.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory rehearse" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory rehearse" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory rehearse" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory rehearse" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor memory rehearse" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor timers" -ge 1' -fka '(__torpor_custom_completion ---completion timers -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor timers" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor timers" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor timers" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor timers" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor timers" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor timers" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor mailbox" -eq 1' -fka '(__torpor_custom_completion ---completion mailbox -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox" take' -l 'take' -d 'What is shown does not wait any more.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox"' -l 'drop' -d 'Only that of this number, which does not wait any more.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor mailbox" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor settings" -eq 1' -fka '(__torpor_custom_completion ---completion settings -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings"' -l 'unset' -d 'Give the setting its default again.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" file' -l 'file' -d 'Read changes from a file: lines of KEY=VALUE, or a JSON object.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" stdin' -l 'stdin' -d 'Read the value of the setting from standard input.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor settings" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor unhandled" -ge 1' -fka '(__torpor_custom_completion ---completion unhandled -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" f follow' -l 'follow' -s 'f' -d 'Go on with what nobody handles from now on.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" show' -l 'show' -d 'What that of this number says, as JSON.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled"' -l 'replay' -d 'Have that of this number told again.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" to' -l 'to' -d 'The app that is told it, in place of the one that it was sent to.' -rfka '(__torpor_custom_completion ---completion unhandled -- --to (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled"' -l 'drop' -d 'Keep that of this number no longer.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" drop-all' -l 'drop-all' -d 'Keep none of the apps any longer.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor unhandled" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor data" -ge 1' -fka '(__torpor_custom_completion ---completion data -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor data" purge' -l 'purge' -d 'Remove the data of the apps, which must not run.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor data"' -l 'only' -d 'Remove what is in this folder alone: documents, library, caches or tmp.' -rfka 'documents library caches tmp'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor data" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor data" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor data" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor data" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor data" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor health" -ge 1' -fka '(__torpor_custom_completion ---completion health -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor health" state' -l 'state' -d 'The state that each APP must be in: inactive, active, background, suspended.' -rfka 'inactive active background suspended'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor health" timeout' -l 'timeout' -d 'The longest time to wait for an answer, such as 10s; 5s if none is named.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor health" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor health" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor health" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor health" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor health" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor metrics" format' -l 'format' -d 'openmetrics, or prometheus for its older text format.' -rfka 'openmetrics prometheus'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor metrics" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor metrics" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor metrics" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor metrics" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor metrics" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor start" -ge 1' -fka '(__torpor_custom_completion ---completion start -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" background' -l 'background' -d 'Launch into the background.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" force' -l 'force' -d 'Although a policy is against it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor start" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor stop" -ge 1' -fka '(__torpor_custom_completion ---completion stop -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor stop" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor stop" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor stop" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor stop" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor stop" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor stop" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor stop" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor restart" -ge 1' -fka '(__torpor_custom_completion ---completion restart -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor restart" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor restart" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor restart" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor restart" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor restart" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor restart" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor restart" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor foreground" -ge 1' -fka '(__torpor_custom_completion ---completion foreground -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" url' -l 'url' -d 'What the app shall open there; for apps with a delegate.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor foreground" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor open" -eq 1' -F
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" app' -l 'app' -d 'Open it with this app.' -rfka '(__torpor_custom_completion ---completion open -- --app (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" type' -l 'type' -d 'Media type of the file, in place of the one that its name says.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" which' -l 'which' -d 'Show the apps that open it, the one that would be chosen first, and open nothing.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor open" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor background" -ge 1' -fka '(__torpor_custom_completion ---completion background -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor background" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor background" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor background" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor background" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor background" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor background" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor background" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor suspend" -ge 1' -fka '(__torpor_custom_completion ---completion suspend -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" force' -l 'force' -d 'Suspend even if something holds the app, or an app in use requires it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor suspend" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor resume" -ge 1' -fka '(__torpor_custom_completion ---completion resume -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor resume" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor resume" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor resume" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor resume" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor resume" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor resume" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor resume" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor interrupt" -ge 1' -fka '(__torpor_custom_completion ---completion interrupt -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" end' -l 'end' -d 'End an interruption.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor interrupt" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor hold" -ge 1' -fka '(__torpor_custom_completion ---completion hold -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" for' -l 'for' -d 'How long, such as 10m.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" reason' -l 'reason' -d 'Why; it is shown with the app.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" end' -l 'end' -d 'End all holds of the apps.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor hold" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor force-quit" -ge 1' -fka '(__torpor_custom_completion ---completion force-quit -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor force-quit" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor force-quit" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor force-quit" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor force-quit" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor force-quit" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor force-quit" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor force-quit" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor signal" -eq 1' -fka 'HUP SIGHUP INT SIGINT QUIT SIGQUIT USR1 SIGUSR1 USR2 SIGUSR2 TERM SIGTERM ABRT SIGABRT WINCH SIGWINCH'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor signal" -eq 2' -fka '(__torpor_custom_completion ---completion signal -- positional@1 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor signal" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor signal" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor signal" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor signal" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor signal" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor post" -eq 1' -fka '(__torpor_custom_completion ---completion post -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" payload' -l 'payload' -d 'What it says: JSON, @FILE with JSON, or - for standard input.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" coalesce' -l 'coalesce' -d 'How it becomes one with what waits of the topic: all, latest, count, merge or net; else as the app says.' -rfka 'all latest count merge net'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" key' -l 'key' -d 'What of the topic it is about: only what has the same key becomes one.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" urgent' -l 'urgent' -d 'Wake the app for it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" no-wake' -l 'no-wake' -d 'Wait until the app wakes anyway, also where its configuration says urgent.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor post" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor reset" -ge 1' -fka '(__torpor_custom_completion ---completion reset -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor reset" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor reset" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor reset" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor reset" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor reset" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor wait" -ge 1' -fka '(__torpor_custom_completion ---completion wait -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor wait" for' -l 'for' -d 'The state: not-running, inactive, active, background, suspended.' -rfka 'not-running inactive active background suspended'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor wait" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor wait" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor wait" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor wait" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor wait" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor wait" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor init" -eq 1' -fa '(__torpor_complete_directories)'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor init" y yes' -l 'yes' -s 'y' -d 'Ask nothing: take what is found.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor init" force' -l 'force' -d 'Write over a torpor.toml that is there.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor init" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor init" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor init" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor import" -eq 1' -F
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor import" from' -l 'from' -d 'What it is: procfile, supervisord, compose, pm2, s6, runit, systemd.' -rfka 'procfile supervisord compose pm2 s6 runit systemd'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor import" o output' -l 'output' -s 'o' -d 'The file to write; else standard output.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor import" env' -l 'env' -d 'PM2: the environment, whose env_NAME is taken.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor import" force' -l 'force' -d 'Write over a file that is there.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor import" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor import" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor import" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor check" -eq 1' -fa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor check" strict' -l 'strict' -d 'Fail on warnings too, with exit status 1.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor check" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor check" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor check" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor check" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor check" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" diff' -l 'diff' -d 'Only show what would happen, and why.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" restart' -l 'restart' -d 'Launch anew what runs with old values, in order of dependency.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor apply" -ge 1' -fka '(__torpor_custom_completion ---completion apply -- positional@0 (count (__torpor_tokens -pc)) (__torpor_tokens -tC))'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" no-wait' -l 'no-wait' -d 'Return as soon as the supervisor has the request.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor apply" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy" -eq 1' -fa 'list' -d 'Shows the policies in use: their state, what they were asked and what they advised.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy" -eq 1' -fa 'new' -d 'Writes a package with a policy that builds at once.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy" -eq 1' -fa 'check' -d 'Finds out whether a policy can be relied on.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy" -eq 1' -fa 'simulate' -d 'Finds out what a policy would have done in a recording.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy" -eq 1' -fa 'reload' -d 'Opens a policy\'s library anew.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy" -eq 1' -fa 'order' -d 'Shows whom the policies would end first if memory were short, and why.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy list" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy list" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy list" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy list" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy list" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy new" -eq 1' -fa '(__torpor_complete_directories)'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy new" c' -l 'c' -d 'In C.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy new" kit' -l 'kit' -d 'Torpor\'s policy kit.' -rfa '(__torpor_complete_directories)'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy new" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy new" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy new" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor policy check" -eq 1' -fa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'so\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy check" questions' -l 'questions' -d 'How many questions the check of its memory asks.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy check" deadline' -l 'deadline' -d 'The deadline that the policy is to have.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy check"' -l 'option' -d 'An option of the policy, its value as in the configuration, or as plain text; once for each.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy check" host' -l 'host' -d 'The program torpor-policy-host.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy check" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy check" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy check" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate" trace' -l 'trace' -d 'The recording.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate" policy' -l 'policy' -d 'The library.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'so\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate" utc' -l 'utc' -d 'Show and read times in UTC, and not in the local time zone.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate"' -l 'option' -d 'An option of the policy, its value as in the configuration, or as plain text; once for each.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate" host' -l 'host' -d 'The program torpor-policy-host.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy simulate" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy reload" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy reload" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy reload" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy reload" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy reload" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy order" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy order" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy order" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy order" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor policy order" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor doctor" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor doctor" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor doctor" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor doctor" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor doctor" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor upgrade" timeout' -l 'timeout' -d 'The longest time to wait, such as 10s; 30s if none is named.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor upgrade" socket' -l 'socket' -d 'The supervisor\'s control socket.' -rF
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor upgrade" json' -l 'json' -d 'One JSON document on standard output (an object a line for streams).'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor upgrade" v verbose' -l 'verbose' -s 'v' -d 'Say on standard error what goes on with the supervisor, such as its replacement.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor upgrade" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor upgrade" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app" -eq 1' -fa 'delegate' -d 'Hears the app\'s lifecycle for a script, or for a program that knows nothing of it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app" -eq 1' -fa 'task' -d 'Background tasks, for the scripts of an app.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app" -eq 1' -fa 'state' -d 'The app\'s saved state, for the scripts of an app.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app" -eq 1' -fa 'subscribe' -d 'Has an app take what is posted to it of a topic, for the scripts of an app.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app" -eq 1' -fa 'can-open' -d 'Tells whether another app opens URLs of a scheme.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app delegate"' -l 'on' -d 'A command for a message; * for those that have none.' -rfka 'willFinishLaunching= restoreState= didFinishLaunching= openURL= didBecomeActive= willResignActive= didEnterBackground= willEnterForeground= resumed= willTerminate= didReceiveMemoryWarning= taskExpiring= settingsDidChange= identityDidChange= significantTimeChange= performFetch= didReceiveEvent= didReceiveNotification= didReceiveRemoteNotification= protectedDataWillBecomeUnavailable= protectedDataDidBecomeAvailable='
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app delegate" answers' -l 'answers' -d 'Read the answers from standard input.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app delegate" json' -l 'json' -d 'One JSON object a line for each message.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app delegate" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app delegate" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app task" -eq 1' -fa 'run' -d 'Runs a command as a background task.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app task" -eq 1' -fa 'begin' -d 'Begins a background task that ‘torpor app task end’ ends.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app task" -eq 1' -fa 'end' -d 'Ends a background task that ‘torpor app task begin’ began.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app task" -eq 1' -fa 'list' -d 'Shows the app\'s background tasks.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app task" -eq 1' -fa 'time' -d 'Shows how long the app may still run for its background tasks.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task run" name' -l 'name' -d 'What the task is called; the command\'s name if none is given.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task run" stop-before' -l 'stop-before' -d 'How long before the time is used up the command gets SIGTERM; none: never.' -rfka ''
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task run" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task run" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task run" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task begin" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task begin" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task begin" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task end" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task end" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task end" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task list" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task list" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task list" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task time" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task time" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app task time" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app state" -eq 1' -fa 'save' -d 'Saves a file as the app\'s state; returns when it is durable.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app state" -eq 1' -fa 'restore' -d 'Writes what was saved to a file; 3 if there is nothing to restore at this launch.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app state" -eq 1' -fa 'discard' -d 'Forgets what was saved.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app state save" -eq 1' -F
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state save" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state save" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state save" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_positional "torpor app state restore" -eq 1' -F
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state restore" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state restore" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state restore" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state discard" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state discard" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app state discard" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" coalesce' -l 'coalesce' -d 'all, latest, count, merge or net.' -rfka 'all latest count merge net'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" urgent' -l 'urgent' -d 'Each wakes the app.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" wake' -l 'wake' -d 'How what is urgent wakes it: background, foreground or none.' -rfka 'background foreground none'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" keep' -l 'keep' -d 'It waits until it is taken, also where a signal tells of it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" end' -l 'end' -d 'End it.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app subscribe" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app can-open" json' -l 'json' -d 'One JSON document on standard output.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app can-open" version' -l 'version' -d 'Show the version.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor app can-open" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'torpor' -n '__torpor_should_offer_completions_for_flags_or_options "torpor help" version' -l 'version' -d 'Show the version.'
