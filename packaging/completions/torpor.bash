#!/bin/bash
# shellcheck disable=SC2064,SC2207 # written by swift-argument-parser

__torpor_cursor_index_in_current_word() {
    local remaining="${COMP_LINE}"

    local word
    for word in "${COMP_WORDS[@]::COMP_CWORD}"; do
        remaining="${remaining##*([[:space:]])"${word}"*([[:space:]])}"
    done

    local -ir index="$((COMP_POINT - ${#COMP_LINE} + ${#remaining}))"
    if [[ "${index}" -le 0 ]]; then
        printf 0
    else
        printf %s "${index}"
    fi
}

# positional arguments:
#
# - 1: the current (sub)command's count of positional arguments
#
# required variables:
#
# - repeating_flags: the repeating flags that the current (sub)command can accept
# - non_repeating_flags: the non-repeating flags that the current (sub)command can accept
# - repeating_options: the repeating options that the current (sub)command can accept
# - non_repeating_options: the non-repeating options that the current (sub)command can accept
# - positional_number: value ignored
# - unparsed_words: unparsed words from the current command line
#
# modified variables:
#
# - non_repeating_flags: remove flags for this (sub)command that are already on the command line
# - non_repeating_options: remove options for this (sub)command that are already on the command line
# - positional_number: set to the current positional number
# - unparsed_words: remove all flags, options, and option values for this (sub)command
__torpor_offer_flags_options() {
    local -ir positional_count="${1}"
    positional_number=0

    local was_flag_option_terminator_seen=false
    local is_parsing_option_value=false

    local -ar unparsed_word_indices=("${!unparsed_words[@]}")
    local -i word_index
    for word_index in "${unparsed_word_indices[@]}"; do
        if "${is_parsing_option_value}"; then
            # This word is an option value:
            # Reset marker for next word iff not currently the last word
            [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]] && is_parsing_option_value=false
            unset "unparsed_words[${word_index}]"
            # Do not process this word as a flag or an option
            continue
        fi

        local word="${unparsed_words["${word_index}"]}"
        if ! "${was_flag_option_terminator_seen}"; then
            case "${word}" in
            --)
                unset "unparsed_words[${word_index}]"
                # by itself -- is a flag/option terminator, but if it is the last word, it is the start of a completion
                if [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]]; then
                    was_flag_option_terminator_seen=true
                fi
                continue
                ;;
            -*)
                # ${word} is a flag or an option
                # If ${word} is an option, mark that the next word to be parsed is an option value
                local option
                for option in "${repeating_options[@]}" "${non_repeating_options[@]}"; do
                    [[ "${word}" = "${option}" ]] && is_parsing_option_value=true && break
                done

                # Remove ${word} from ${non_repeating_flags} or ${non_repeating_options} so it isn't offered again
                local not_found=true
                local -i index
                for index in "${!non_repeating_flags[@]}"; do
                    if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                        unset "non_repeating_flags[${index}]"
                        non_repeating_flags=("${non_repeating_flags[@]}")
                        not_found=false
                        break
                    fi
                done
                if "${not_found}"; then
                    for index in "${!non_repeating_flags[@]}"; do
                        if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                            unset "non_repeating_flags[${index}]"
                            non_repeating_flags=("${non_repeating_flags[@]}")
                            break
                        fi
                    done
                fi
                unset "unparsed_words[${word_index}]"
                continue
                ;;
            esac
        fi

        # ${word} is neither a flag, nor an option, nor an option value
        if [[ "${positional_number}" -lt "${positional_count}" || "${positional_count}" -lt 0 ]]; then
            # ${word} is a positional
            ((positional_number++))
            unset "unparsed_words[${word_index}]"
        else
            if [[ -z "${word}" ]]; then
                # Could be completing a flag, option, or subcommand
                positional_number=-1
            else
                # ${word} is a subcommand or invalid, so stop processing this (sub)command
                positional_number=-2
            fi
            break
        fi
    done

    unparsed_words=("${unparsed_words[@]}")

    if\
        ! "${was_flag_option_terminator_seen}"\
        && ! "${is_parsing_option_value}"\
        && [[ ("${cur}" = -* && "${positional_number}" -ge 0) || "${positional_number}" -eq -1 ]]
    then
        COMPREPLY+=($(compgen -W "${repeating_flags[*]} ${non_repeating_flags[*]} ${repeating_options[*]} ${non_repeating_options[*]}" -- "${cur}"))
    fi
}

__torpor_add_completions() {
    [[ "${1}" != -[fdo] ]] || compopt -o filenames
    local completion
    while IFS='' read -r completion; do
        COMPREPLY+=("${completion}")
    done < <(IFS=$'\n' compgen "${@}" -- "${cur}")
}

__torpor_custom_complete() {
    if [[ -n "${cur}" || -z ${COMP_WORDS[${COMP_CWORD}]} || "${COMP_LINE:${COMP_POINT}:1}" != ' ' ]]; then
        local -ar words=("${COMP_WORDS[@]}")
    else
        local -ar words=("${COMP_WORDS[@]::${COMP_CWORD}}" '' "${COMP_WORDS[@]:${COMP_CWORD}}")
    fi

    "${COMP_WORDS[0]}" "${@}" "${words[@]}"
}

_torpor() {
    local state
    state="$(shopt -p;shopt -po)"
    trap "${state//$'\n'/;}" RETURN
    shopt -s extglob
    set +o history +o posix

    local -xr SAP_SHELL=bash
    local -x SAP_SHELL_VERSION
    SAP_SHELL_VERSION="$(IFS='.';printf %s "${BASH_VERSINFO[*]}")"
    local -r SAP_SHELL_VERSION

    local -r cur="${2}"
    local -r prev="${3}"

    local -i positional_number
    local -a unparsed_words=("${COMP_WORDS[@]:1:${COMP_CWORD}}")

    local -a repeating_flags=()
    local -a non_repeating_flags=(--version -h --help)
    local -a repeating_options=()
    local -a non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    list|status|top|logs|events|history|report|snapshot|graph|memory|timers|mailbox|settings|permissions|protect|unhandled|transfers|alerts|data|health|metrics|start|stop|restart|foreground|open|activity|background|suspend|resume|interrupt|scene|hold|own|disown|move|state|force-quit|signal|post|notify|badge|reset|wait|init|import|check|apply|policy|desktop|bundle|install|rollback|uninstall|doctor|upgrade|app|help)
        # Offer subcommand argument completions
        "_torpor_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'list status top logs events history report snapshot graph memory timers mailbox settings permissions protect unhandled transfers alerts data health metrics start stop restart foreground open activity background suspend resume interrupt scene hold own disown move state force-quit signal post notify badge reset wait init import check apply policy desktop bundle install rollback uninstall doctor upgrade app help' -- "${cur}"))
        ;;
    esac
}

_torpor_list() {
    repeating_flags=()
    non_repeating_flags=(--scenes --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion list -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_status() {
    repeating_flags=()
    non_repeating_flags=(--utc --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion status -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_top() {
    repeating_flags=()
    non_repeating_flags=(--once --json --ascii --version -h --help)
    repeating_options=()
    non_repeating_options=(--delay -d --socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--delay'|'-d')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_logs() {
    repeating_flags=()
    non_repeating_flags=(--follow -f -t --times --utc --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(-n --lines --since --grep --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '-n'|'--lines')
        return
        ;;
    '--since')
        return
        ;;
    '--grep')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion logs -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_events() {
    repeating_flags=()
    non_repeating_flags=(--follow -f --otlp --utc --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(-n --lines --since --record --for --every --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '-n'|'--lines')
        return
        ;;
    '--since')
        return
        ;;
    '--record')
        __torpor_add_completions -f
        return
        ;;
    '--for')
        return
        ;;
    '--every')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion events -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_history() {
    repeating_flags=()
    non_repeating_flags=(--utc --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(-n --lines --since --until --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '-n'|'--lines')
        return
        ;;
    '--since')
        return
        ;;
    '--until')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion history -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_report() {
    repeating_flags=()
    non_repeating_flags=(--utc --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(-n --lines --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '-n'|'--lines')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion report -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_snapshot() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--output -o --save --scene --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--output'|'-o')
        __torpor_add_completions -f
        return
        ;;
    '--save')
        __torpor_add_completions -f
        return
        ;;
    '--scene')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion snapshot -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_graph() {
    repeating_flags=()
    non_repeating_flags=(--dot --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion graph -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_memory() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    rehearse)
        # Offer subcommand argument completions
        "_torpor_memory_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'rehearse' -- "${cur}"))
        ;;
    esac
}

_torpor_memory_rehearse() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_timers() {
    repeating_flags=()
    non_repeating_flags=(--utc --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion timers -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_mailbox() {
    repeating_flags=()
    non_repeating_flags=(--take --utc --json --verbose -v --version -h --help)
    repeating_options=(--drop)
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--drop')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion mailbox -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_settings() {
    repeating_flags=()
    non_repeating_flags=(--utc --json --verbose -v --version -h --help)
    repeating_options=(--unset)
    non_repeating_options=(--file --stdin --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--unset')
        return
        ;;
    '--file')
        __torpor_add_completions -f
        return
        ;;
    '--stdin')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion settings -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_permissions() {
    repeating_flags=()
    non_repeating_flags=(--reset --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion permissions -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    *)
        __torpor_add_completions -W 'allow'$'\n''deny'
        return
        ;;
    esac
}

_torpor_protect() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    status|lock|unlock|init|passphrase|move)
        # Offer subcommand argument completions
        "_torpor_protect_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'status lock unlock init passphrase move' -- "${cur}"))
        ;;
    esac
}

_torpor_protect_status() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_protect_lock() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_protect_unlock() {
    repeating_flags=()
    non_repeating_flags=(--pam --stdin --recovery --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_protect_init() {
    repeating_flags=()
    non_repeating_flags=(--stdin --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_protect_passphrase() {
    repeating_flags=()
    non_repeating_flags=(--stdin --recovery --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_protect_move() {
    repeating_flags=()
    non_repeating_flags=(--stop --decrypt --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion protect move -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_unhandled() {
    repeating_flags=()
    non_repeating_flags=(--follow -f --drop-all --utc --json --verbose -v --version -h --help)
    repeating_options=(--replay --drop)
    non_repeating_options=(--show --to --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--show')
        return
        ;;
    '--replay')
        return
        ;;
    '--to')
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion unhandled -- --to "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    '--drop')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion unhandled -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_transfers() {
    repeating_flags=()
    non_repeating_flags=(--follow -f --cancel-all --json --verbose -v --version -h --help)
    repeating_options=(--cancel)
    non_repeating_options=(--session --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--session')
        return
        ;;
    '--cancel')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion transfers -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_alerts() {
    repeating_flags=()
    non_repeating_flags=(--all --utc --json --verbose -v --version -h --help)
    repeating_options=(--cancel)
    non_repeating_options=(--dismiss --answer --action --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--dismiss')
        return
        ;;
    '--cancel')
        return
        ;;
    '--answer')
        return
        ;;
    '--action')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion alerts -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_data() {
    repeating_flags=()
    non_repeating_flags=(--purge --json --verbose -v --version -h --help)
    repeating_options=(--only)
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--only')
        __torpor_add_completions -W 'documents'$'\n''library'$'\n''caches'$'\n''tmp'
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion data -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_health() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--state --timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--state')
        __torpor_add_completions -W 'inactive'$'\n''active'$'\n''background'$'\n''suspended'
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion health -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_metrics() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--format --socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--format')
        __torpor_add_completions -W 'openmetrics'$'\n''prometheus'
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_start() {
    repeating_flags=()
    non_repeating_flags=(--background --standby --force --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion start -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_stop() {
    repeating_flags=()
    non_repeating_flags=(--keep-state --until-boot --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion stop -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_restart() {
    repeating_flags=()
    non_repeating_flags=(--keep-state --force --only-running --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion restart -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_foreground() {
    repeating_flags=()
    non_repeating_flags=(--no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--url --timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--url')
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion foreground -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_open() {
    repeating_flags=()
    non_repeating_flags=(--which --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--app --type --timeout --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--app')
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion open -- --app "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    '--type')
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_activity() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    list|continue|export)
        # Offer subcommand argument completions
        "_torpor_activity_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'list continue export' -- "${cur}"))
        ;;
    esac
}

_torpor_activity_list() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_activity_continue() {
    repeating_flags=()
    non_repeating_flags=(--no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--to --from --timeout --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--to')
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion activity continue -- --to "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    '--from')
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion activity continue -- --from "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_activity_export() {
    repeating_flags=()
    non_repeating_flags=(--with-state --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--output -o --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--output'|'-o')
        __torpor_add_completions -f
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion activity export -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_background() {
    repeating_flags=()
    non_repeating_flags=(--no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion background -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_suspend() {
    repeating_flags=()
    non_repeating_flags=(--force --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion suspend -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_resume() {
    repeating_flags=()
    non_repeating_flags=(--no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion resume -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_interrupt() {
    repeating_flags=()
    non_repeating_flags=(--end --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion interrupt -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_scene() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    open|disconnect|discard|list)
        # Offer subcommand argument completions
        "_torpor_scene_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'open disconnect discard list' -- "${cur}"))
        ;;
    esac
}

_torpor_scene_open() {
    repeating_flags=()
    non_repeating_flags=(--background --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--session --timeout --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--session')
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion scene open -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_scene_disconnect() {
    repeating_flags=()
    non_repeating_flags=(--no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion scene disconnect -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_scene_discard() {
    repeating_flags=()
    non_repeating_flags=(--no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion scene discard -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_scene_list() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_hold() {
    repeating_flags=()
    non_repeating_flags=(--end --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--for --reason --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--for')
        return
        ;;
    '--reason')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion hold -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_own() {
    repeating_flags=()
    non_repeating_flags=(--renew --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--for --timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--for')
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion own -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_disown() {
    repeating_flags=()
    non_repeating_flags=(--stop --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion disown -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_move() {
    repeating_flags=()
    non_repeating_flags=(--dry-run --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--ssh --for --timeout --socket)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--ssh')
        return
        ;;
    '--for')
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion move -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_state() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    export|import)
        # Offer subcommand argument completions
        "_torpor_state_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'export import' -- "${cur}"))
        ;;
    esac
}

_torpor_state_export() {
    repeating_flags=()
    non_repeating_flags=(--no-mail --no-state --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--output -o --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--output'|'-o')
        __torpor_add_completions -f
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion state export -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_state_import() {
    repeating_flags=()
    non_repeating_flags=(--raw --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion state import -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    2)
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_force-quit() {
    repeating_flags=()
    non_repeating_flags=(--no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion force-quit -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_signal() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W 'HUP'$'\n''SIGHUP'$'\n''INT'$'\n''SIGINT'$'\n''QUIT'$'\n''SIGQUIT'$'\n''USR1'$'\n''SIGUSR1'$'\n''USR2'$'\n''SIGUSR2'$'\n''TERM'$'\n''SIGTERM'$'\n''ABRT'$'\n''SIGABRT'$'\n''WINCH'$'\n''SIGWINCH'
        return
        ;;
    2)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion signal -- positional@1 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_post() {
    repeating_flags=()
    non_repeating_flags=(--urgent --no-wake --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--payload --coalesce --key --socket)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--payload')
        return
        ;;
    '--coalesce')
        __torpor_add_completions -W 'all'$'\n''latest'$'\n''count'$'\n''merge'$'\n''net'
        return
        ;;
    '--key')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion post -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_notify() {
    repeating_flags=()
    non_repeating_flags=(--wake --json --verbose -v --version -h --help)
    repeating_options=(--action)
    non_repeating_options=(--body --at --after --calendar --time-zone --id --urgency --sound --badge --url --payload --socket)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--body')
        return
        ;;
    '--at')
        return
        ;;
    '--after')
        return
        ;;
    '--calendar')
        return
        ;;
    '--time-zone')
        return
        ;;
    '--id')
        return
        ;;
    '--urgency')
        __torpor_add_completions -W 'low'$'\n''normal'$'\n''critical'
        return
        ;;
    '--sound')
        return
        ;;
    '--badge')
        return
        ;;
    '--action')
        return
        ;;
    '--url')
        return
        ;;
    '--payload')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion notify -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_badge() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion badge -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_reset() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion reset -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_wait() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--for --timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--for')
        __torpor_add_completions -W 'not-running'$'\n''inactive'$'\n''active'$'\n''background'$'\n''suspended'
        return
        ;;
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion wait -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_init() {
    repeating_flags=()
    non_repeating_flags=(--yes -y --force --json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -d
        return
        ;;
    esac
}

_torpor_import() {
    repeating_flags=()
    non_repeating_flags=(--programs --force --json --version -h --help)
    repeating_options=(--profile)
    non_repeating_options=(--from --output -o --env)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--from')
        __torpor_add_completions -W 'procfile'$'\n''supervisord'$'\n''compose'$'\n''pm2'$'\n''s6'$'\n''runit'$'\n''systemd'$'\n''quadlet'$'\n''docker-run'
        return
        ;;
    '--output'|'-o')
        __torpor_add_completions -f
        return
        ;;
    '--env')
        return
        ;;
    '--profile')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_check() {
    repeating_flags=()
    non_repeating_flags=(--strict --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -o plusdirs -fX '!*.@(toml)'
        return
        ;;
    esac
}

_torpor_apply() {
    repeating_flags=()
    non_repeating_flags=(--diff --restart --force --no-wait --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __torpor_add_completions -W "$(__torpor_custom_complete ---completion apply -- positional@0 "${COMP_CWORD}" "$(__torpor_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_torpor_policy() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    list|new|check|simulate|reload|order)
        # Offer subcommand argument completions
        "_torpor_policy_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'list new check simulate reload order' -- "${cur}"))
        ;;
    esac
}

_torpor_policy_list() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_policy_new() {
    repeating_flags=()
    non_repeating_flags=(--c --json --version -h --help)
    repeating_options=()
    non_repeating_options=(--kit)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--kit')
        __torpor_add_completions -d
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    2)
        __torpor_add_completions -d
        return
        ;;
    esac
}

_torpor_policy_check() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=(--option)
    non_repeating_options=(--questions --deadline --host)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--questions')
        return
        ;;
    '--deadline')
        return
        ;;
    '--option')
        return
        ;;
    '--host')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -o plusdirs -fX '!*.@(so)'
        return
        ;;
    esac
}

_torpor_policy_simulate() {
    repeating_flags=()
    non_repeating_flags=(--utc --json --version -h --help)
    repeating_options=(--option)
    non_repeating_options=(--trace --policy --host)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--trace')
        __torpor_add_completions -f
        return
        ;;
    '--policy')
        __torpor_add_completions -o plusdirs -fX '!*.@(so)'
        return
        ;;
    '--option')
        return
        ;;
    '--host')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_policy_reload() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_policy_order() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_desktop() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    sync)
        # Offer subcommand argument completions
        "_torpor_desktop_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'sync' -- "${cur}"))
        ;;
    esac
}

_torpor_desktop_sync() {
    repeating_flags=()
    non_repeating_flags=(--user --system --all --dry-run --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--folder --config --socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--folder')
        __torpor_add_completions -d
        return
        ;;
    '--config')
        __torpor_add_completions -o plusdirs -fX '!*.@(toml)'
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_bundle() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    build|sign|verify|list|keygen)
        # Offer subcommand argument completions
        "_torpor_bundle_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'build sign verify list keygen' -- "${cur}"))
        ;;
    esac
}

_torpor_bundle_build() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--output)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--output')
        __torpor_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -d
        return
        ;;
    esac
}

_torpor_bundle_sign() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--key --signature --comment)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--key')
        __torpor_add_completions -f
        return
        ;;
    '--signature')
        __torpor_add_completions -f
        return
        ;;
    '--comment')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -o plusdirs -fX '!*.@(torpor)'
        return
        ;;
    esac
}

_torpor_bundle_verify() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--bundles --keys)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--bundles')
        __torpor_add_completions -d
        return
        ;;
    '--keys')
        __torpor_add_completions -d
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -o plusdirs -fX '!*.@(torpor)'
        return
        ;;
    esac
}

_torpor_bundle_list() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--bundles --keys)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--bundles')
        __torpor_add_completions -d
        return
        ;;
    '--keys')
        __torpor_add_completions -d
        return
        ;;
    esac
}

_torpor_bundle_keygen() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_install() {
    repeating_flags=()
    non_repeating_flags=(--force --json --version -h --help)
    repeating_options=()
    non_repeating_options=(--bundles --keys)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--bundles')
        __torpor_add_completions -d
        return
        ;;
    '--keys')
        __torpor_add_completions -d
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -o plusdirs -fX '!*.@(torpor)'
        return
        ;;
    esac
}

_torpor_rollback() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--bundles --keys)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--bundles')
        __torpor_add_completions -d
        return
        ;;
    '--keys')
        __torpor_add_completions -d
        return
        ;;
    esac
}

_torpor_uninstall() {
    repeating_flags=()
    non_repeating_flags=(--purge --json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--bundles --keys --socket)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--bundles')
        __torpor_add_completions -d
        return
        ;;
    '--keys')
        __torpor_add_completions -d
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_doctor() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_upgrade() {
    repeating_flags=()
    non_repeating_flags=(--json --verbose -v --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout --socket)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    '--socket')
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_app() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    delegate|task|state|subscribe|can-open|transfer|notify|alerts|badge|permissions|request-permission|activity)
        # Offer subcommand argument completions
        "_torpor_app_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'delegate task state subscribe can-open transfer notify alerts badge permissions request-permission activity' -- "${cur}"))
        ;;
    esac
}

_torpor_app_delegate() {
    repeating_flags=()
    non_repeating_flags=(--answers --json --version -h --help)
    repeating_options=(--on)
    non_repeating_options=()
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--on')
        __torpor_add_completions -W 'willFinishLaunching='$'\n''restoreState='$'\n''didFinishLaunching='$'\n''openURL='$'\n''didBecomeActive='$'\n''willResignActive='$'\n''didEnterBackground='$'\n''willEnterForeground='$'\n''resumed='$'\n''willTerminate='$'\n''didReceiveMemoryWarning='$'\n''taskExpiring='$'\n''settingsDidChange='$'\n''identityDidChange='$'\n''significantTimeChange='$'\n''performFetch='$'\n''didReceiveEvent='$'\n''didReceiveNotification='$'\n''didReceiveRemoteNotification='$'\n''protectedDataWillBecomeUnavailable='$'\n''protectedDataDidBecomeAvailable='$'\n''handleEventsForBackgroundTransfer='$'\n''transferDidFinish='$'\n''transferNeedsLogin='$'\n''didReceiveLocalNotification='$'\n''sceneWillConnect='$'\n''sceneDidBecomeActive='$'\n''sceneWillResignActive='$'\n''sceneDidEnterBackground='$'\n''sceneWillEnterForeground='$'\n''sceneDidDisconnect='$'\n''didDiscardScenes='$'\n''refresh='$'\n''willContinueActivity='$'\n''continueActivity='$'\n''didFailToContinueActivity='$'\n''activityWasContinued='
        return
        ;;
    esac
}

_torpor_app_task() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    run|begin|end|list|time)
        # Offer subcommand argument completions
        "_torpor_app_task_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'run begin end list time' -- "${cur}"))
        ;;
    esac
}

_torpor_app_task_run() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--name --stop-before)
    __torpor_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--name')
        return
        ;;
    '--stop-before')
        return
        ;;
    esac
}

_torpor_app_task_begin() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1
}

_torpor_app_task_end() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1
}

_torpor_app_task_list() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0
}

_torpor_app_task_time() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0
}

_torpor_app_state() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    save|restore|discard)
        # Offer subcommand argument completions
        "_torpor_app_state_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'save restore discard' -- "${cur}"))
        ;;
    esac
}

_torpor_app_state_save() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--scene)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--scene')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_app_state_restore() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_app_state_discard() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--scene)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--scene')
        return
        ;;
    esac
}

_torpor_app_subscribe() {
    repeating_flags=()
    non_repeating_flags=(--urgent --keep --end --json --version -h --help)
    repeating_options=()
    non_repeating_options=(--coalesce --wake)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--coalesce')
        __torpor_add_completions -W 'all'$'\n''latest'$'\n''count'$'\n''merge'$'\n''net'
        return
        ;;
    '--wake')
        __torpor_add_completions -W 'background'$'\n''foreground'$'\n''none'
        return
        ;;
    esac
}

_torpor_app_can-open() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1
}

_torpor_app_transfer() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    get|put|list|cancel|login|wait)
        # Offer subcommand argument completions
        "_torpor_app_transfer_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'get put list cancel login wait' -- "${cur}"))
        ;;
    esac
}

_torpor_app_transfer_get() {
    repeating_flags=()
    non_repeating_flags=(--discretionary --no-events --wait --json --version -h --help)
    repeating_options=(-H --header)
    non_repeating_options=(--sha256 --session --priority)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--sha256')
        return
        ;;
    '--session')
        return
        ;;
    '-H'|'--header')
        return
        ;;
    '--priority')
        return
        ;;
    esac
}

_torpor_app_transfer_put() {
    repeating_flags=()
    non_repeating_flags=(--retry --discretionary --no-events --wait --json --version -h --help)
    repeating_options=(-H --header)
    non_repeating_options=(--method --session --priority)
    __torpor_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--method')
        return
        ;;
    '--session')
        return
        ;;
    '-H'|'--header')
        return
        ;;
    '--priority')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __torpor_add_completions -f
        return
        ;;
    esac
}

_torpor_app_transfer_list() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--session)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--session')
        return
        ;;
    esac
}

_torpor_app_transfer_cancel() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1
}

_torpor_app_transfer_login() {
    repeating_flags=()
    non_repeating_flags=(--header --cancel --json --version -h --help)
    repeating_options=()
    non_repeating_options=(--user)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--user')
        return
        ;;
    esac
}

_torpor_app_transfer_wait() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=(--session)
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--session')
        return
        ;;
    esac
}

_torpor_app_notify() {
    repeating_flags=()
    non_repeating_flags=(--wake --json --version -h --help)
    repeating_options=(--action)
    non_repeating_options=(--body --at --after --calendar --time-zone --id --urgency --sound --badge --url --payload)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--body')
        return
        ;;
    '--at')
        return
        ;;
    '--after')
        return
        ;;
    '--calendar')
        return
        ;;
    '--time-zone')
        return
        ;;
    '--id')
        return
        ;;
    '--urgency')
        __torpor_add_completions -W 'low'$'\n''normal'$'\n''critical'
        return
        ;;
    '--sound')
        return
        ;;
    '--badge')
        return
        ;;
    '--action')
        return
        ;;
    '--url')
        return
        ;;
    '--payload')
        return
        ;;
    esac
}

_torpor_app_alerts() {
    repeating_flags=()
    non_repeating_flags=(--all --utc --json --version -h --help)
    repeating_options=(--cancel)
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--cancel')
        return
        ;;
    esac
}

_torpor_app_badge() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1
}

_torpor_app_permissions() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0
}

_torpor_app_request-permission() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 1
}

_torpor_app_activity() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    set|end)
        # Offer subcommand argument completions
        "_torpor_app_activity_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'set end' -- "${cur}"))
        ;;
    esac
}

_torpor_app_activity_set() {
    repeating_flags=()
    non_repeating_flags=(--state --json --version -h --help)
    repeating_options=()
    non_repeating_options=(--title --payload --url)
    __torpor_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--title')
        return
        ;;
    '--payload')
        return
        ;;
    '--url')
        return
        ;;
    esac
}

_torpor_app_activity_end() {
    repeating_flags=()
    non_repeating_flags=(--json --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options 0
}

_torpor_help() {
    repeating_flags=()
    non_repeating_flags=(--version)
    repeating_options=()
    non_repeating_options=()
    __torpor_offer_flags_options -1
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2178 # appended to what swift-argument-parser writes

# Apps have names such as web@1, and tag:NAME stands for several: to bash these are three words, of which it completes the
# last. Here they are one, until the completions are handed back.
_torpor_words() {
    local -a joined=()
    local -i index current=0
    local rest="${COMP_LINE}" word
    for index in "${!COMP_WORDS[@]}"; do
        word="${COMP_WORDS[index]}"
        if [[ "${index}" -gt 0 && "${rest}" != [[:space:]]* && ("${word}" = [:@]* || "${COMP_WORDS[index - 1]}" = *[:@]) ]]; then
            joined[${#joined[@]} - 1]+="${word}"
        else
            joined+=("${word}")
        fi
        rest="${rest#"${rest%%[![:space:]]*}"}"
        rest="${rest#"${word}"}"
        [[ "${index}" -ne "${COMP_CWORD}" ]] || current="${#joined[@]}-1"
    done
    local -a COMP_WORDS=("${joined[@]}")
    local -i COMP_CWORD="${current}"
    local cur="${COMP_WORDS[COMP_CWORD]}" prev=""
    [[ "${cur}" = *[:@]* ]] || cur="${2}"
    [[ "${COMP_CWORD}" -eq 0 ]] || prev="${COMP_WORDS[COMP_CWORD - 1]}"
    _torpor "${1}" "${cur}" "${prev}"
    [[ "${cur}" != *[:@]* ]] || COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*[:@]}"}"}")
}

complete -F _torpor_words torpor
