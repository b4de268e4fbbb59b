#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance scenario's app for the shell: README.md says what it does. `torpor delegate` runs this for a message.
record() { echo "$*" >>"$CONFORMANCE/rec.$TORPOR_APP"; }
visits=$CONFORMANCE/visits.$TORPOR_APP

case $TORPOR_MESSAGE in
willFinishLaunching)
    echo 0 >"$visits"
    case $TORPOR_LAUNCH_OPTIONS in
    *'"foreground":true'*) record "$TORPOR_MESSAGE" foreground ;;
    *) record "$TORPOR_MESSAGE" background ;;
    esac
    ;;
restoreState)
    cp "$TORPOR_MESSAGE_PATH" "$visits"
    record "$TORPOR_MESSAGE" "$(cat "$visits")"
    ;;
willResignActive)
    record "$TORPOR_MESSAGE"
    while [ -e "$CONFORMANCE/hold" ]; do sleep 0.01; done
    ;;
didEnterBackground)
    record "$TORPOR_MESSAGE"
    echo $(($(cat "$visits") + 1)) >"$visits"
    printf %s "$(cat "$visits")" | "$TORPOR" state save - || exit 1
    if [ -e "$CONFORMANCE/long" ]; then
        # shellcheck disable=SC2016 # the inner sh expands it: CONFORMANCE is exported
        "$TORPOR" task run --name upload --stop-before none -- \
            sh -c 'until [ -e "$CONFORMANCE/expired" ]; do sleep 0.01; done' >/dev/null 2>&1 3>&- &
        until "$TORPOR" task list | grep -q upload; do sleep 0.01; done
    fi
    ;;
taskExpiring)
    record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_NAME"
    : >"$CONFORMANCE/expired"
    while "$TORPOR" task list | grep -q upload; do sleep 0.01; done
    ;;
resumed)
    case $TORPOR_MESSAGE_GAP_S in
    *[1-9]*) record "$TORPOR_MESSAGE" after a gap ;;
    *) record "$TORPOR_MESSAGE" at once ;;
    esac
    ;;
openURL) record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_URL" ;;
didReceiveMemoryWarning) record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_LEVEL" ;;
settingsDidChange | identityDidChange) record "$TORPOR_MESSAGE" "$(basename "$TORPOR_MESSAGE_CHANGED_PATH")" ;;
significantTimeChange)
    zone=${TORPOR_MESSAGE_PAYLOAD##*'"time_zone":"'}
    record "$TORPOR_MESSAGE" "${zone%%'"'*}"
    ;;
didReceiveEvent | didReceiveRemoteNotification)
    record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_TOPIC" "$TORPOR_MESSAGE_PAYLOAD"
    case $TORPOR_MESSAGE_TOPIC in
    left) echo unhandled >&3 ;;
    fetch)
        file=$TORPOR_MESSAGE_PAYLOAD
        "$TORPOR" app transfer get --session files "$CONFORMANCE_SERVER$file" "$file" >/dev/null || exit 1
        ;;
    esac
    ;;
handleEventsForBackgroundTransfer) record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_SESSION" ;;
transferDidFinish)
    if [ -n "${TORPOR_MESSAGE_ERROR-}" ]; then end=failed; else end="done"; fi
    record "$TORPOR_MESSAGE" "$(basename "$TORPOR_MESSAGE_PATH")" $end
    ;;
transferNeedsLogin)
    record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_REALM"
    printf tulip | "$TORPOR" app transfer login --user me "$TORPOR_MESSAGE_TRANSFER"
    ;;
sceneWillConnect)
    case $TORPOR_MESSAGE_OPTIONS in *'"foreground":true'*) how=foreground ;; *) how=background ;; esac
    case $TORPOR_MESSAGE_OPTIONS in *'"new":true'*) age=new ;; *) age=known ;; esac
    session=$(printf %s "$TORPOR_SESSION" | sed -n 's/.*"n":\([0-9]*\).*/\1/p')
    if [ -n "$TORPOR_MESSAGE_PATH" ]; then state=$(cat "$TORPOR_MESSAGE_PATH"); else state=-; fi
    record "$TORPOR_MESSAGE" "$TORPOR_SCENE" $how $age "${session:--}" "$state"
    [ "$TORPOR_SCENE" != nobody ] || echo "failed there is no nobody" >&3
    ;;
sceneDidBecomeActive | sceneWillResignActive | sceneWillEnterForeground | sceneDidDisconnect)
    record "$TORPOR_MESSAGE" "$TORPOR_SCENE"
    ;;
sceneDidEnterBackground)
    record "$TORPOR_MESSAGE" "$TORPOR_SCENE"
    printf '%s was here' "$TORPOR_SCENE" | "$TORPOR" app state save - --scene "$TORPOR_SCENE" || exit 1
    ;;
didDiscardScenes) record "$TORPOR_MESSAGE" "$(echo "$TORPOR_MESSAGE_SCENES" | tr '\n' , | sed 's/,$//')" ;;
didReceiveNotification) record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_TOPIC" ;;
willTerminate) record "$TORPOR_MESSAGE" "$TORPOR_MESSAGE_REASON" ;;
*) record "$TORPOR_MESSAGE" ;;
esac
