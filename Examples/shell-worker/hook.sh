#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the worker's delegate does with a message; TORPOR_MESSAGE is its name.
set -eu
jobs=${1:-jobs}
mkdir -p "$jobs"

case $TORPOR_MESSAGE in
restoreState)
    torpor app state restore "$jobs/.count"
    ;;
didBecomeActive | willEnterForeground)
    rm -f "$jobs/.paused"
    ;;
didEnterBackground)
    : >"$jobs/.paused"
    ;;
willTerminate)
    echo "ends after $(cat "$jobs/.count" 2>/dev/null || echo 0) jobs"
    ;;
*)
    # Another app may be told. Where that cannot be, it means done.
    echo unhandled >&3
    ;;
esac
