#!/bin/sh
# Writes the shell completions anew: packaging/completions/generate.sh [PATH-OF-TORPOR]
set -eu
torpor=${1:-.build/release/torpor}
here=$(dirname "$0")
for shell in bash zsh fish; do
    "$torpor" --generate-completion-script "$shell" >"$here/torpor.$shell.new"
    mv "$here/torpor.$shell.new" "$here/torpor.$shell"
done
