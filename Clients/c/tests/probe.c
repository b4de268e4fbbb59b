// SPDX-License-Identifier: Apache-2.0

/* An app for tests: does what lines of its standard input say, and writes what it hears on its standard output.
 *
 * probe [--thread] [--worker] [--bare: without functions for messages] [--mute: without one for problems] [--null: without a delegate]. Lines: "later NAME", "fails NAME", "leaves NAME", "forks NAME", "keeps NAME" (a child that only waits), "returns NAME NUMBER", "declines NAME BITS" say how messages are answered from
 * now on, "fetched N" what performFetch found; "answer ID", "failed ID", "unhandled ID", "pending ID MS", "begin NAME", "end TOKEN", "time", "expiring", "save TEXT", "save-size BYTES",
 * "save-file NAME", "open URL", "can-open SCHEME", "post TOPIC", "post-to APP", "post-text JSON", "subscribe TOPIC", "unsubscribe TOPIC", "take DONE", "discard", "notify TEXT", "quit" call the function; "scene NAME" says whose
 * state and snapshot it is from now on, "scene -" those of the app. */
#define _POSIX_C_SOURCE 200809L
#include "../torpor_app.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char later[64], fails[64], leaves[64], declines[64], forks[64], keeps[64], returns[64];
static int returned;
static pid_t child = -1;
static unsigned declined, fetched;
static char scene_name[64];

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length] = '\n';
    if (write(1, line, (size_t)length + 1) < 0)
        exit(1);
}

static const char *shown(const char *text) { return text != NULL ? text : "-"; }

/* What belongs to the message, by the functions that give it its type. */
static void tell_parts(const torpor_message *message)
{
    const char *name = message->name;
    if (strcmp(name, "didReceiveMemoryWarning") == 0)
        say("level %d", (int)torpor_message_level(message));
    if (strcmp(name, "willTerminate") == 0)
        say("reason %s", shown(torpor_message_reason(message)));
    if (strcmp(name, "taskExpiring") == 0) {
        torpor_task task = torpor_message_task(message);
        say("task %lld %s %lld", (long long)task.token, shown(task.name), (long long)task.remaining_ms);
    }
    if (strcmp(name, "settingsDidChange") == 0 || strcmp(name, "identityDidChange") == 0) {
        for (size_t index = 0; torpor_message_changed(message, index) != NULL; index++)
            say("changed %s", torpor_message_changed(message, index));
        say("path %s", shown(torpor_message_path(message)));
    }
    if (strcmp(name, "refresh") == 0) {
        size_t index = 0;
        for (; torpor_message_refresh(message, index) != NULL; index++)
            say("refresh %s", torpor_message_refresh(message, index));
        say("refresh %s", shown(torpor_message_refresh(message, index)));
    }
    if (strstr(name, "Activity") != NULL || strcmp(name, "activityWasContinued") == 0) {
        torpor_activity activity = torpor_message_activity(message);
        say("activity %s %s %lld %s %s %s %s", shown(activity.type), shown(activity.title),
            (long long)torpor_json_int(torpor_json_get(activity.payload, "line"), -1), shown(activity.url),
            shown(activity.source), shown(activity.reason), shown(activity.by));
    }
    if (strcmp(name, "significantTimeChange") == 0) {
        torpor_time_change change = torpor_message_time_change(message);
        say("clock %d %s %d %s", change.clock_was_set, shown(change.time_zone),
            change.utc_offset_s == TORPOR_SAME_OFFSET ? -1 : (int)change.utc_offset_s, shown(change.day));
    }
    if (strstr(name, "ransfer") != NULL) {
        torpor_transfer transfer = torpor_message_transfer(message);
        say("transfer %lld %s %s %s %lld %lld", (long long)transfer.id, shown(transfer.session), shown(transfer.url),
            shown(transfer.path), (long long)transfer.bytes, (long long)transfer.status);
        say("end %s %s %s %s", shown(transfer.sha256), shown(transfer.error), shown(transfer.realm),
            shown(transfer.scheme));
    }
    if (strcmp(name, "didReceiveLocalNotification") == 0) {
        torpor_alert alert = torpor_message_alert(message);
        say("alert %s %lld %s %s %s", shown(alert.id), (long long)alert.scheduled_at,
            shown(torpor_json_string(alert.payload, NULL)), shown(alert.action), shown(alert.activation_token));
    } else if (strncmp(name, "didReceive", 10) == 0) {
        torpor_mail mail = torpor_message_mail(message);
        say("mail %lld %s %s %s %lld %lld %lld", (long long)mail.id, shown(mail.topic), shown(mail.key),
            shown(mail.sender), (long long)mail.count, (long long)mail.first_at, (long long)mail.last_at);
        say("payload %s", shown(torpor_json_string(mail.payload, NULL)));
    }
}

static void tell_scene(const torpor_message *message)
{
    torpor_scene scene = torpor_message_scene(message);
    say("scene %s %lld %d %d %s %lld", shown(scene.name),
        (long long)torpor_json_int(torpor_json_get(scene.session, "tab"), -1), scene.is_foreground, scene.is_new,
        shown(scene.state_path), (long long)scene.state_bytes);
    if (scene.state_path != NULL) {
        size_t size = 0;
        char *state = torpor_app_read_state(message, &size);
        say("state %s", state != NULL ? state : strerror(errno));
        free(state);
    }
}

/* Of a scene that obey was told, or of the app. */
static int save_state(torpor_app *app, const void *bytes, size_t size)
{
    return scene_name[0] != '\0' ? torpor_app_save_scene_state(app, scene_name, bytes, size)
                                 : torpor_app_save_state(app, bytes, size);
}

static int save_snapshot(torpor_app *app, const void *bytes, size_t size)
{
    return scene_name[0] != '\0' ? torpor_app_save_scene_snapshot(app, scene_name, bytes, size)
                                 : torpor_app_save_snapshot(app, bytes, size);
}

static torpor_result hear(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    say("message %lld %s", (long long)message->id, message->name);
    if (strcmp(message->name, "restoreState") == 0) {
        size_t size = 0;
        char *state = torpor_app_read_state(message, &size);
        say("state %s", state != NULL ? state : strerror(errno));
        free(state);
    }
    if (strcmp(message->name, "openURL") == 0)
        say("url %s %s %s", shown(torpor_message_url(message)), shown(torpor_message_source(message)),
            shown(torpor_message_media_type(message)));
    if (strcmp(message->name, "resumed") == 0)
        say("gap %.2f", torpor_message_gap(message));
    tell_parts(message);
    if (strncmp(message->name, "scene", 5) == 0 || strstr(message->name, "FinishLaunching") != NULL)
        tell_scene(message);
    for (size_t index = 0; torpor_message_discarded(message, index) != NULL; index++)
        say("discarded scene %s", torpor_message_discarded(message, index));
    /* The child falls back into the loop of its parent. */
    if (strcmp(message->name, forks) == 0)
        child = fork();
    if (strcmp(message->name, keeps) == 0) {
        pid_t waiting = fork();
        if (waiting == 0)
            for (;;)
                pause();
        say("child %ld", (long)waiting);
    }
    if (strcmp(message->name, returns) == 0)
        return (torpor_result)returned;
    if (strcmp(message->name, leaves) == 0)
        return TORPOR_UNHANDLED;
    if (strcmp(message->name, later) == 0)
        return TORPOR_LATER;
    if (strcmp(message->name, declines) == 0)
        message->declines = declined;
    if (strcmp(message->name, "performFetch") == 0)
        message->fetched = (torpor_fetched)fetched;
    if (strcmp(message->name, fails) == 0) {
        message->text = "It \"failed\".";
        return TORPOR_FAILED;
    }
    return TORPOR_DONE;
}

static void problem(torpor_app *app, const char *sentence, void *context)
{
    (void)app;
    (void)context;
    say("problem %s", sentence);
}

static void attached(torpor_app *app, const torpor_json *situation, void *context)
{
    (void)app;
    (void)context;
    say("attached %s", torpor_json_string(torpor_json_get(situation, "state"), NULL));
}

static void report(torpor_app *app, const char *what, long long result)
{
    char text[256] = "";
    if (result < 0)
        torpor_app_last_error(app, text, sizeof text);
    say("%s %lld %s", what, result, text);
}

/* False when it is time to go. */
static bool obey(torpor_app *app, char *line)
{
    char *rest = strchr(line, ' ');
    if (rest != NULL)
        *rest++ = '\0';
    else
        rest = line + strlen(line);
    int64_t left = 0;
    if (strcmp(line, "later") == 0)
        snprintf(later, sizeof later, "%s", rest);
    else if (strcmp(line, "fails") == 0)
        snprintf(fails, sizeof fails, "%s", rest);
    else if (strcmp(line, "leaves") == 0)
        snprintf(leaves, sizeof leaves, "%s", rest);
    else if (strcmp(line, "forks") == 0)
        snprintf(forks, sizeof forks, "%s", rest);
    else if (strcmp(line, "keeps") == 0)
        snprintf(keeps, sizeof keeps, "%s", rest);
    else if (strcmp(line, "returns") == 0)
        sscanf(rest, "%63s %d", returns, &returned);
    else if (strcmp(line, "declines") == 0)
        sscanf(rest, "%63s %u", declines, &declined);
    else if (strcmp(line, "scene") == 0)
        snprintf(scene_name, sizeof scene_name, "%s", strcmp(rest, "-") != 0 ? rest : "");
    else if (strcmp(line, "fetched") == 0)
        fetched = (unsigned)atoi(rest);
    else if (strcmp(line, "answer") == 0)
        torpor_app_answer(app, atoll(rest), TORPOR_DONE, NULL, 0);
    else if (strcmp(line, "failed") == 0)
        torpor_app_answer(app, atoll(rest), TORPOR_FAILED, "Later it failed.", 0);
    else if (strcmp(line, "unhandled") == 0)
        torpor_app_answer(app, atoll(rest), TORPOR_UNHANDLED, NULL, 0);
    else if (strcmp(line, "pending") == 0) {
        char *end;
        long long id = strtoll(rest, &end, 10);
        torpor_app_pending(app, id, atoll(end), "It \xff takes.");
    } else if (strcmp(line, "begin") == 0) {
        long long token = torpor_app_begin_task(app, rest, &left);
        report(app, "begun", token);
        say("remaining %lld", (long long)left);
    } else if (strcmp(line, "end") == 0)
        report(app, "ended", torpor_app_end_task(app, atoll(rest)));
    else if (strcmp(line, "time") == 0) {
        report(app, "asked", torpor_app_background_time(app, &left));
        say("remaining %lld", (long long)left);
    } else if (strcmp(line, "expiring") == 0)
        report(app, "expiring", torpor_app_is_expiring(app));
    else if (strcmp(line, "save") == 0)
        report(app, "saved", save_state(app, rest, strlen(rest)));
    else if (strcmp(line, "save-size") == 0) {
        size_t size = (size_t)atoll(rest);
        char *bytes = malloc(size + 1);
        for (size_t index = 0; index < size; index++)
            bytes[index] = (char)(index % 251);
        report(app, "saved", save_state(app, bytes, size));
        free(bytes);
    } else if (strcmp(line, "save-file") == 0)
        report(app, "saved", scene_name[0] != '\0' ? torpor_app_save_scene_state_file(app, scene_name, rest)
                                                   : torpor_app_save_state_file(app, rest));
    else if (strcmp(line, "show") == 0)
        report(app, "shown", save_snapshot(app, rest, strlen(rest)));
    else if (strcmp(line, "show-file") == 0)
        report(app, "shown", scene_name[0] != '\0' ? torpor_app_save_scene_snapshot_file(app, scene_name, rest)
                                                   : torpor_app_save_snapshot_file(app, rest));
    else if (strcmp(line, "hide") == 0)
        report(app, "hidden", scene_name[0] != '\0' ? torpor_app_discard_scene_snapshot(app, scene_name)
                                                    : torpor_app_discard_snapshot(app));
    else if (strcmp(line, "open") == 0)
        report(app, "opened", torpor_app_open_url(app, rest));
    else if (strcmp(line, "can-open") == 0)
        report(app, "can", torpor_app_can_open(app, rest));
    else if (strcmp(line, "post") == 0)
        report(app, "posted", torpor_app_post(app, "notes", rest, "{\"a\":[1]}", TORPOR_TOPIC_URGENT));
    else if (strcmp(line, "post-to") == 0)
        report(app, "posted", torpor_app_post(app, rest, "a", NULL, 0));
    else if (strcmp(line, "post-text") == 0)
        report(app, "posted", torpor_app_post(app, "notes", "a", rest, 0));
    else if (strcmp(line, "subscribe") == 0)
        report(app, "subscribed", torpor_app_subscribe(app, rest, "count", TORPOR_TOPIC_KEEP));
    else if (strcmp(line, "unsubscribe") == 0)
        report(app, "unsubscribed", torpor_app_unsubscribe(app, rest));
    else if (strcmp(line, "take") == 0) {
        int64_t first = atoll(rest), done[] = {first, first + 1};
        torpor_json *mail = torpor_app_take(app, 2, first == 0, done, first == 0 ? 0 : 2);
        const torpor_json *message = torpor_json_at(mail, 0);
        say("took %zu %lld %s", torpor_json_count(mail), (long long)torpor_json_int(torpor_json_get(message, "id"), -1),
            shown(torpor_json_string(torpor_json_get(message, "topic"), NULL)));
        torpor_json_free(mail);
    } else if (strcmp(line, "download") == 0)
        report(app, "begun", torpor_app_start_transfer(app, "download", rest, "a \"b\"", NULL, 0));
    else if (strcmp(line, "upload") == 0)
        report(app, "begun", torpor_app_start_transfer(app, "upload", rest, "b", "mine",
                                                       TORPOR_TRANSFER_DISCRETIONARY | TORPOR_TRANSFER_SILENT));
    else if (strcmp(line, "alert") == 0) {
        torpor_alert_request alert = {
            .title = rest, .id = "tea", .body = "a \"b\"", .calendar = "daily", .wake = true, .payload = "{\"a\":[1]}",
            .actions = "[{\"id\":\"later\",\"label\":\"Later\"}]",
        };
        report(app, "scheduled", torpor_app_schedule_alert(app, &alert));
    } else if (strcmp(line, "alert-text") == 0) {
        torpor_alert_request alert = {.title = "Tea", .actions = rest};
        report(app, "scheduled", torpor_app_schedule_alert(app, &alert));
    } else if (strcmp(line, "alert-late") == 0) {
        torpor_alert_request alert = {.title = rest, .after_ms = 60000, .url = "notes:1", .urgency = "low"};
        report(app, "scheduled", torpor_app_schedule_alert(app, &alert));
    } else if (strcmp(line, "no-alert") == 0)
        report(app, "cancelled", torpor_app_cancel_alert(app, rest[0] != '\0' ? rest : NULL));
    else if (strcmp(line, "badge") == 0)
        report(app, "badged", torpor_app_set_badge(app, atoll(rest)));
    else if (strcmp(line, "activity") == 0) {
        torpor_current_activity activity = {rest, "a \"title\"", "{\"line\":12}", "notes:1", true};
        report(app, "activity", torpor_app_set_activity(app, &activity));
    } else if (strcmp(line, "bare-activity") == 0) {
        torpor_current_activity activity = {.type = rest};
        report(app, "activity", torpor_app_set_activity(app, &activity));
    } else if (strcmp(line, "end-activity") == 0)
        report(app, "activity ended", torpor_app_end_activity(app));
    else if (strcmp(line, "needs-refresh") == 0) {
        const char *names[] = {rest, "more"};
        report(app, "needs refresh", torpor_app_set_needs_refresh(app, names, 2));
    } else if (strcmp(line, "last-error") == 0) {
        char text[256];
        torpor_app_last_error(app, text, sizeof text);
        say("last error: %s", text);
    } else if (strcmp(line, "permission") == 0)
        report(app, "permission", torpor_app_permission(app, rest));
    else if (strcmp(line, "request") == 0) {
        torpor_question question;
        char text[256] = "";
        int state = torpor_app_request_permission(app, rest, &question);
        if (state < 0)
            torpor_app_last_error(app, text, sizeof text);
        say("requested %d %d %lld %s", state, question.asked, (long long)question.next_at, text);
    }
    else if (strcmp(line, "cancel") == 0)
        report(app, "cancelled", torpor_app_cancel_transfer(app, atoll(rest)));
    else if (strcmp(line, "login") == 0)
        report(app, "answered", torpor_app_answer_login(app, atoll(rest), "me", "tu\"lip"));
    else if (strcmp(line, "no-login") == 0)
        report(app, "answered", torpor_app_answer_login(app, atoll(rest), NULL, NULL));
    else if (strcmp(line, "settings") == 0) {
        torpor_json *settings = torpor_app_settings(app);
        say("settings %zu %lld %s %s", torpor_json_count(settings),
            (long long)torpor_json_int(torpor_json_get(settings, "port"), -1),
            shown(torpor_json_string(torpor_json_get(settings, "theme"), NULL)),
            torpor_json_is_null(torpor_json_get(settings, "quota")) ? "null" : "a value");
        torpor_json_free(settings);
    } else if (strcmp(line, "set-theme") == 0)
        report(app, "set", torpor_app_set_setting(app, "theme", strcmp(rest, "-") != 0 ? rest : NULL));
    else if (strcmp(line, "set-port") == 0)
        report(app, "set", torpor_app_set_setting(app, "port", rest));
    else if (strcmp(line, "discard") == 0)
        report(app, "discarded", scene_name[0] != '\0' ? torpor_app_discard_scene_state(app, scene_name)
                                                       : torpor_app_discard_state(app));
    else if (strcmp(line, "notify") == 0)
        report(app, "notified", torpor_app_notify(rest));
    else if (strcmp(line, "quit") == 0)
        return false;
    say("did %s", line);
    return true;
}

/* Reads lines of standard input as they come; false at the end. */
static bool read_lines(torpor_app *app)
{
    static char buffer[65536];
    static size_t used;
    ssize_t count = read(0, buffer + used, sizeof buffer - 1 - used);
    if (count <= 0)
        return false;
    used += (size_t)count;
    char *end;
    while ((end = memchr(buffer, '\n', used)) != NULL) {
        *end = '\0';
        if (!obey(app, buffer))
            return false;
        used -= (size_t)(end + 1 - buffer);
        memmove(buffer, end + 1, used);
    }
    return true;
}

/* In a forked child: what its parent's app does for it. */
static int use_of_parent(torpor_app *app)
{
    char error[256];
    say("child dispatch %d", torpor_app_dispatch(app));
    say("child save %d", torpor_app_save_state(app, "child", 5));
    torpor_app_last_error(app, error, sizeof error);
    say("child %s", error);
    struct pollfd watched = {torpor_app_fd(app), POLLIN, 0};
    say("child readable %d", poll(&watched, 1, 0));
    torpor_app_close(app);
    say("child ends");
    return 0;
}

int main(int count, char **arguments)
{
    bool thread = false;
    bool bare = false;
    bool mute = false;
    bool null = false;
    unsigned flags = 0;
    for (int index = 1; index < count; index++) {
        thread = thread || strcmp(arguments[index], "--thread") == 0;
        bare = bare || strcmp(arguments[index], "--bare") == 0;
        null = null || strcmp(arguments[index], "--null") == 0;
        mute = mute || strcmp(arguments[index], "--mute") == 0;
        if (strcmp(arguments[index], "--worker") == 0)
            flags = TORPOR_NO_MESSAGES;
    }
    torpor_delegate delegate = {.open_url = hear, .other = hear, .attached = attached, .problem = problem};
    delegate.did_receive_event = delegate.settings_did_change = delegate.did_receive_memory_warning = hear;
    delegate.scene_will_connect = delegate.scene_did_become_active = delegate.scene_will_resign_active = hear;
    delegate.scene_did_enter_background = delegate.scene_will_enter_foreground = delegate.scene_did_disconnect = hear;
    delegate.transfer_did_finish = delegate.transfer_needs_login = delegate.did_receive_local_notification = hear;
    if (bare)
        delegate = (torpor_delegate){.attached = attached, .problem = problem};
    if (mute)
        delegate.problem = NULL;
    torpor_app *app = torpor_app_open(null ? NULL : &delegate, NULL, flags);
    if (app == NULL) {
        say("%s", strerror(errno));
        return 1;
    }
    say("supervised %d", torpor_app_supervised(app));
    if (thread && torpor_app_start(app) != 0)
        return 1;
    for (;;) {
        struct pollfd watched[2] = {{0, POLLIN, 0}, {thread ? -1 : torpor_app_fd(app), POLLIN, 0}};
        poll(watched, 2, -1);
        if (watched[1].revents != 0)
            torpor_app_dispatch(app);
        if (child == 0)
            return use_of_parent(app);
        if (watched[0].revents != 0 && !read_lines(app))
            break;
    }
    torpor_app_close(app);
    say("closed");
    return 0;
}
