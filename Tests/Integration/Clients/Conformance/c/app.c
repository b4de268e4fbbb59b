// SPDX-License-Identifier: Apache-2.0

/* The conformance scenario's app in C: README.md says what it does. Driven by the program's own poll loop. */
#define _POSIX_C_SOURCE 200809L
#include "torpor_app.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct app {
    int visits;
    int64_t held; /* The message whose answer waits. */
    int64_t task;
};

static bool is_there(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("CONFORMANCE"), name);
    return access(path, F_OK) == 0;
}

static void record(const char *what, const char *detail)
{
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/rec.%s", getenv("CONFORMANCE"), getenv("TORPOR_APP"));
    int length = snprintf(line, sizeof line, "%s%s%s\n", what, detail != NULL ? " " : "", detail != NULL ? detail : "");
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, (size_t)length) != length)
        abort();
    close(file);
}

static torpor_result launch(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    const torpor_json *options = torpor_message_options(message);
    record(message->name, torpor_json_bool(torpor_json_get(options, "foreground"), false) ? "foreground" : "background");
    return TORPOR_DONE;
}

static torpor_result restore(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    size_t size;
    char *state = torpor_app_read_state(message, &size);
    record(message->name, state);
    ((struct app *)context)->visits = state != NULL ? atoi(state) : -1;
    free(state);
    return TORPOR_DONE;
}

static torpor_result resign(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    record(message->name, NULL);
    if (!is_there("hold"))
        return TORPOR_DONE;
    ((struct app *)context)->held = message->id;
    return TORPOR_LATER;
}

static torpor_result enter_background(torpor_app *app, torpor_message *message, void *context)
{
    struct app *own = context;
    record(message->name, NULL);
    char state[16];
    int length = snprintf(state, sizeof state, "%d", ++own->visits);
    if (torpor_app_save_state(app, state, (size_t)length) != 0)
        return TORPOR_FAILED;
    if (is_there("long") && (own->task = torpor_app_begin_task(app, "upload", NULL)) < 0)
        return TORPOR_FAILED;
    return TORPOR_DONE;
}

static torpor_result expiring(torpor_app *app, torpor_message *message, void *context)
{
    record(message->name, torpor_message_task(message).name);
    return torpor_app_end_task(app, ((struct app *)context)->task) == 0 ? TORPOR_DONE : TORPOR_FAILED;
}

static torpor_result resumed(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    record(message->name, torpor_message_gap(message) > 0 ? "after a gap" : "at once");
    return TORPOR_DONE;
}

static torpor_result open_url(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    record(message->name, torpor_message_url(message));
    return TORPOR_DONE;
}

static torpor_result memory_warning(torpor_app *app, torpor_message *message, void *context)
{
    static const char *const names[] = {"", "warning", "critical", "limit"};
    (void)app;
    (void)context;
    record(message->name, names[torpor_message_level(message)]);
    return TORPOR_DONE;
}

static torpor_result changed(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    const char *path = torpor_message_path(message);
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    record(message->name, slash != NULL ? slash + 1 : path);
    return TORPOR_DONE;
}

static torpor_result time_change(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    record(message->name, torpor_message_time_change(message).time_zone);
    return TORPOR_DONE;
}

static torpor_result mail(torpor_app *app, torpor_message *message, void *context)
{
    (void)context;
    torpor_mail mail = torpor_message_mail(message);
    const char *payload = torpor_json_string(mail.payload, NULL);
    char text[128];
    snprintf(text, sizeof text, "%s%s%s", mail.topic, payload != NULL ? " " : "", payload != NULL ? payload : "");
    record(message->name, text);
    if (strcmp(mail.topic, "fetch") == 0) {
        char url[256];
        snprintf(url, sizeof url, "%s%s", getenv("CONFORMANCE_SERVER"), payload);
        return torpor_app_start_transfer(app, "download", url, payload, "files", 0) > 0 ? TORPOR_DONE : TORPOR_FAILED;
    }
    return strcmp(mail.topic, "left") == 0 ? TORPOR_UNHANDLED : TORPOR_DONE;
}

static torpor_result session_over(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    record(message->name, torpor_message_transfer(message).session);
    return TORPOR_DONE;
}

static torpor_result transferred(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    torpor_transfer transfer = torpor_message_transfer(message);
    const char *slash = transfer.path != NULL ? strrchr(transfer.path, '/') : NULL;
    char text[128];
    snprintf(text, sizeof text, "%s %s", slash != NULL ? slash + 1 : "", transfer.error != NULL ? "failed" : "done");
    record(message->name, text);
    return TORPOR_DONE;
}

static torpor_result log_in(torpor_app *app, torpor_message *message, void *context)
{
    (void)context;
    torpor_transfer transfer = torpor_message_transfer(message);
    record(message->name, transfer.realm);
    return torpor_app_answer_login(app, transfer.id, "me", "tulip") == 0 ? TORPOR_DONE : TORPOR_FAILED;
}

static torpor_result scene_connects(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    torpor_scene scene = torpor_message_scene(message);
    size_t size;
    char *state = scene.state_path != NULL ? torpor_app_read_state(message, &size) : NULL;
    const torpor_json *number = torpor_json_get(scene.session, "n");
    char session[32] = "-", text[200];
    if (number != NULL)
        snprintf(session, sizeof session, "%lld", (long long)torpor_json_int(number, -1));
    snprintf(text, sizeof text, "%s %s %s %s %s", scene.name, scene.is_foreground ? "foreground" : "background",
             scene.is_new ? "new" : "known", session, state != NULL ? state : "-");
    free(state);
    record(message->name, text);
    if (strcmp(scene.name, "nobody") != 0)
        return TORPOR_DONE;
    message->text = "there is no nobody";
    return TORPOR_FAILED;
}

static torpor_result scene_enters_background(torpor_app *app, torpor_message *message, void *context)
{
    (void)context;
    const char *name = torpor_message_scene(message).name;
    record(message->name, name);
    char state[100];
    int length = snprintf(state, sizeof state, "%s was here", name);
    return torpor_app_save_scene_state(app, name, state, (size_t)length) == 0 ? TORPOR_DONE : TORPOR_FAILED;
}

static torpor_result of_scene(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    record(message->name, torpor_message_scene(message).name);
    return TORPOR_DONE;
}

static torpor_result discarded(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    char text[200] = "";
    size_t length = 0;
    const char *name;
    for (size_t index = 0; (name = torpor_message_discarded(message, index)) != NULL && length < sizeof text; index++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", index > 0 ? "," : "", name);
    record(message->name, text);
    return TORPOR_DONE;
}

static torpor_result terminate(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    record(message->name, torpor_message_reason(message));
    return TORPOR_DONE;
}

static torpor_result other(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)context;
    record(message->name, NULL);
    return TORPOR_DONE;
}

static void problem(torpor_app *app, const char *sentence, void *context)
{
    (void)app;
    (void)context;
    record("problem", sentence);
}

int main(void)
{
    struct app own = {0, 0, 0};
    const torpor_delegate delegate = {
        .will_finish_launching = launch,
        .restore_state = restore,
        .will_resign_active = resign,
        .did_enter_background = enter_background,
        .task_expiring = expiring,
        .resumed = resumed,
        .open_url = open_url,
        .did_receive_memory_warning = memory_warning,
        .settings_did_change = changed,
        .identity_did_change = changed,
        .significant_time_change = time_change,
        .did_receive_event = mail,
        .did_receive_notification = mail,
        .did_receive_remote_notification = mail,
        .handle_events_for_background_transfer = session_over,
        .transfer_did_finish = transferred,
        .transfer_needs_login = log_in,
        .scene_will_connect = scene_connects,
        .scene_did_become_active = of_scene,
        .scene_will_resign_active = of_scene,
        .scene_did_enter_background = scene_enters_background,
        .scene_will_enter_foreground = of_scene,
        .scene_did_disconnect = of_scene,
        .did_discard_scenes = discarded,
        .will_terminate = terminate,
        .other = other,
        .problem = problem,
    };
    torpor_app *app = torpor_app_open(&delegate, &own, 0);
    if (app == NULL)
        return 1;
    struct pollfd watched = {torpor_app_fd(app), POLLIN, 0};
    for (;;) {
        poll(&watched, 1, own.held != 0 ? 10 : -1);
        torpor_app_dispatch(app);
        if (own.held != 0 && !is_there("hold")) {
            torpor_app_answer(app, own.held, TORPOR_DONE, NULL, 0);
            own.held = 0;
        }
    }
}
