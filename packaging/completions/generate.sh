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
    [ "$shell" != bash ] || sed -i "1a $ignored" "$here/torpor.$shell.new"
    mv "$here/torpor.$shell.new" "$here/torpor.$shell"
done
