#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Works through a folder of jobs: each file is a script, run by sh; what came of it goes beside it as FILE.out.
#
# While the app is in the background it begins no new job. The one at hand is a background task: it comes to its end.
set -eu
jobs=${1:-jobs}
mkdir -p "$jobs"

while :; do
    job=
    # .paused is what the delegate leaves there.
    [ -e "$jobs/.paused" ] || for file in "$jobs"/*.job; do
        [ -e "$file" ] && job=$file && break
    done
    if [ -z "$job" ]; then
        sleep 0.1
        continue
    fi
    if torpor app task run --name "${job##*/}" -- sh "$job" >"$job.out" 2>&1; then
        mv "$job" "$job.done"
    else
        # Its time was up, or it failed: it is left to be tried again.
        mv "$job" "$job.failed"
    fi
    count=$(($(cat "$jobs/.count" 2>/dev/null || echo 0) + 1))
    echo "$count" >"$jobs/.count"
    # Here, since the job at hand may end long after the app went to the background.
    [ -z "${TORPOR_APP_SOCKET:-}" ] || torpor app state save "$jobs/.count" || :
done
