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
