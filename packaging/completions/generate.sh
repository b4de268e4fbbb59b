#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the shell completions anew: packaging/completions/generate.sh [PATH-OF-TORPOR]
set -eu
torpor=${1:-.build/release/torpor}
here=$(dirname "$0")
# swift-argument-parser writes the code: what shellcheck would change in it is not ours to change.
ignored='# shellcheck disable=SC2064,SC2207 # written by swift-argument-parser'
for shell in bash zsh fish; do
    "$torpor" --generate-completion-script "$shell" >"$here/torpor.$shell.new"
    if [ "$shell" = bash ]; then
        # Files alone are file names: in others @ is not to be escaped. Words are put together before they are completed.
        sed -i -e "1a $ignored" -e '/^complete /d' \
            -e '/^__torpor_add_completions() {$/a\    [[ "${1}" != -[fdo] ]] || compopt -o filenames' \
            "$here/torpor.$shell.new"
        cat "$here/words.bash" >>"$here/torpor.$shell.new"
    fi
    mv "$here/torpor.$shell.new" "$here/torpor.$shell"
done
