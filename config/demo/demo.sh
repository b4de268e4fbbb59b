#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Walks the apps of config/demo.toml through their states, and shows beside Torpor's word what the kernel says.
# Everything is in a folder of its own, which goes with the demo. Usage: demo.sh [FOLDER OF THE PROGRAMS] [--stay]
# --stay leaves it running until Ctrl-C.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$root/.build/release
stay=no
for argument in "$@"; do
    case $argument in
    --stay) stay=yes ;;
    [!-]*) bin=$(cd "$argument" && pwd) || exit 1 ;;
    *)
        echo "demo: there is no option $argument; --stay leaves the demo running" >&2
        exit 2
        ;;
    esac
done
for program in torpord torpor torpor-keeper; do
    [ -x "$bin/$program" ] || {
        echo "demo: $bin/$program is missing: run make demo, which builds it" >&2
        exit 1
    }
done
if (exec 3<>/dev/tcp/127.0.0.1/8765) 2>/dev/null; then
    echo "demo: something listens on 127.0.0.1:8765 already, and the demo's web server needs it: stop that first" >&2
    exit 1
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/torpor-demo.XXXXXX") || exit 1
export RUNTIME_DIRECTORY=$work/run STATE_DIRECTORY=$work/state LOGS_DIRECTORY=$work/log
export TORPOR_MANAGER_SOCKET=$work/run/io.torpor
torpor=$bin/torpor
supervisor=
groups=
begun=$SECONDS

# Processes of this demo: whoever has its folder in the environment, except this shell and what it runs.
ours() {
    local entry pid
    for entry in /proc/[0-9]*/environ; do
        pid=${entry#/proc/}
        pid=${pid%/environ}
        [ "$pid" = $$ ] && continue
        if { tr '\0' '\n' <"$entry"; } 2>/dev/null | grep -q "^TORPOR_APP=" &&
            { tr '\0' '\n' <"$entry"; } 2>/dev/null | grep -qF "$work"; then
            echo "$pid"
        fi
    done
}

end() {
    trap - EXIT INT TERM
    if [ -n "$supervisor" ]; then
        kill -TERM "$supervisor" 2>/dev/null
        wait "$supervisor" 2>/dev/null
    fi
    local left
    mapfile -t left < <(ours)
    if [ ${#left[@]} -ne 0 ]; then
        echo "demo: these processes are left, which must not be: ${left[*]}" >&2
        ps -o pid,stat,args -p "${left[*]}" >&2
        kill -KILL "${left[@]}" 2>/dev/null
        rm -rf "$work"
        exit 1
    fi
    if [ "${1:-0}" != 0 ] && [ -s "$work/torpord.err" ]; then sed 's/^/  torpord: /' "$work/torpord.err" >&2; fi
    rm -rf "$work"
    for group in $groups ${groups%/*}; do
        [ -d "$group" ] && {
            echo "demo: the cgroup $group is left, which must not be" >&2
            exit 1
        }
    done
    if [ "${1:-0}" = 0 ]; then
        echo
        echo "Nothing is left: no process, no socket, no cgroup, no file. $((SECONDS - begun)) s."
    fi
    exit "${1:-0}"
}
trap 'end 1' EXIT
trap 'end 0' INT TERM

say() {
    echo
    echo "── $*"
}

run() {
    echo "\$ torpor $*"
    "$torpor" "$@" || {
        echo "demo: torpor $* failed" >&2
        exit 1
    }
}

# State letter (field 3) and processor time (fields 14 and 15, in clock ticks) of /proc/PID/stat; the name in field
# 2 may have spaces, so what counts is behind the last parenthesis.
kernel() {
    local stat fields
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || {
        echo "- -"
        return
    }
    read -ra fields <<<"${stat##*) }"
    echo "${fields[0]} $((fields[11] + fields[12]))"
}

descendants() {
    local child children
    # Each file is a line without an end.
    read -ra children < <(cat /proc/"$1"/task/*/children 2>/dev/null)
    for child in "${children[@]}"; do
        echo "$child"
        descendants "$child"
    done
}

letter_means() {
    case $1 in
    T) echo "stopped" ;;
    t) echo "traced" ;;
    S) echo "sleeping, will run" ;;
    R) echo "running" ;;
    D) echo "waiting for a device" ;;
    Z) echo "dead, not yet reaped" ;;
    *) echo "no process" ;;
    esac
}

# One line a process: what Torpor says of the app, what /proc says of the process.
look() {
    printf '  %-10s %-12s %8s  %-5s %-20s %s\n' APP TORPOR PID STAT "WHICH MEANS" "CPU ms"
    "$torpor" list --json | python3 -c '
import json, sys
for app in json.load(sys.stdin):
    print(app["name"], app["state"] + ("+" if app["transition"] else ""), app["pid"] or 0)
' | while read -r name state pid; do
        [ $# -gt 0 ] && case " $* " in *" $name "*) ;; *) continue ;; esac
        if [ "$pid" = 0 ]; then
            printf '  %-10s %-12s %8s  %-5s %-20s\n' "$name" "$state" - - "no process"
            continue
        fi
        for process in "$pid" $(descendants "$pid"); do
            read -r letter ticks < <(kernel "$process")
            [ "$letter" = - ] && continue
            printf '  %-10s %-12s %8s  %-5s %-20s %s\n' "$name" "$state" "$process" "$letter" \
                "$(letter_means "$letter")" "$((ticks * 10))"
            name="" state=""
        done
    done
}

fetch() {
    python3 - <<'PYTHON'
import urllib.request
try:
    with urllib.request.urlopen("http://127.0.0.1:8765/", timeout=1) as answer:
        print("  web answers:", answer.status, answer.read().decode().split("<p>")[1].split("<")[0])
except Exception as error:
    print("  web does not answer:", error)
PYTHON
}

say "Torpor starts in $work"
"$bin/torpord" --config "$root/config/demo.toml" >"$work/torpord.out" 2>"$work/torpord.err" &
supervisor=$!
for _ in $(seq 100); do
    "$torpor" list >/dev/null 2>&1 && break
    kill -0 "$supervisor" 2>/dev/null || break
    sleep 0.1
done
run wait web heartbeat pipeline --for active --timeout 20s
run list
groups=$("$torpor" status web 2>/dev/null | sed -n 's/^ *cgroup: //p')
say "All apps are active: the kernel says so too"
look
fetch

say "Out of use: web goes to the background, and is then stopped in memory"
run background web
run suspend web
look web
fetch
echo "  (it is there, but it does not run: no processor time until it is resumed)"

say "In use again, where it was"
run foreground web
look web
fetch

say "A pipeline is one app: its shell, its loop and cat stop and continue together"
run suspend pipeline
look pipeline
run resume pipeline
look pipeline
run logs pipeline -n 3

say "heartbeat says how it is by sd_notify; stopped, it misses no heartbeat: the watchdog sleeps too"
run suspend heartbeat
sleep 6
look heartbeat
run foreground heartbeat
run status heartbeat

say "moody fails now and then, and is started again"
run report moody
run logs moody -n 3

say "Somebody kills web from outside: it comes back"
pid=$("$torpor" list --json | python3 -c 'import json,sys; print([a["pid"] for a in json.load(sys.stdin) if a["name"]=="web"][0])')
echo "\$ kill -KILL $pid"
kill -KILL "$pid"
for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
done
run wait web --for active --timeout 10s
look web

if [ "$stay" = yes ]; then
    say "It stays. In another terminal:"
    echo "  export TORPOR_MANAGER_SOCKET=$TORPOR_MANAGER_SOCKET"
    echo "  $torpor list"
    echo "  $torpor suspend web; $torpor foreground web; $torpor logs pipeline -f; $torpor status heartbeat"
    echo "Ctrl-C here ends it and removes everything."
    wait "$supervisor"
    supervisor=
    end 0
fi

say "The end: everything is terminated, in reverse order of what requires what"
run stop web heartbeat pipeline moody
look
end 0
