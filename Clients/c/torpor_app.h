/* SPDX-License-Identifier: Apache-2.0 */

/* torpor_app.h: the C library by which an app under Torpor follows its lifecycle.
 *
 * Add torpor_app.h, torpor_json.h and torpor_app.c to your sources and compile them with C99 or later (with -pthread
 * if the C library needs it). There are no other dependencies. An app opens one torpor_app. Then a thread of the
 * library calls the app's functions (torpor_app_start), or the app polls torpor_app_fd in its own loop and calls
 * torpor_app_dispatch:
 *
 *     static torpor_result did_enter_background(torpor_app *app, torpor_message *message, void *context)
 *     {
 *         return save_everything(context) ? TORPOR_DONE : TORPOR_FAILED;
 *     }
 *     ...
 *     static const torpor_delegate delegate = {.did_enter_background = did_enter_background};
 *     torpor_app *app = torpor_app_open(&delegate, &my_things, 0);
 *     struct pollfd watched = {.fd = torpor_app_fd(app), .events = POLLIN};
 *     while (poll(&watched, 1, -1) >= 0)
 *         torpor_app_dispatch(app);
 *
 * Messages arrive one at a time, in order, each once, even if the supervisor is replaced or restarted in between. A
 * message for which the delegate has no function is answered at once: a URL, an event or a notification, which another
 * app may handle, with TORPOR_UNHANDLED, and any other message with TORPOR_DONE. A program that runs without a
 * supervisor, for example because a user started it in a shell, gets will_finish_launching, did_finish_launching and
 * did_become_active, as at a launch into the foreground. Its tasks are not limited, and saving a state fails
 * (-ENOTCONN).
 *
 * Functions that can fail return 0 or more, or -errno; torpor_app_last_error describes the error. All functions may
 * be called from any thread, except torpor_app_dispatch, torpor_app_start and torpor_app_close: only the thread that
 * called torpor_app_open may call these. After a fork without exec, the child must not use its parent's torpor_app,
 * but must open its own: in the child, whose copies of the connections are closed by pthread_atfork, functions that
 * call the supervisor and torpor_app_dispatch return -ECHILD, and `problem` is called once.
 */
#ifndef TORPOR_APP_H
#define TORPOR_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "torpor_json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this library, which is the version of Torpor. */
#define TORPOR_APP_VERSION "0.2.0"

typedef struct torpor_app torpor_app;

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* An app's answer to a message. Any other number is reported to `problem`, and answers TORPOR_UNHANDLED for a URL, an
 * event or a notification, TORPOR_FAILED for other messages. */
typedef enum torpor_result {
    TORPOR_DONE = 0,   /* The app has handled the message. */
    TORPOR_FAILED = 1, /* The app could not handle the message; message->text says why. */
    TORPOR_LATER = 2,  /* The app will call torpor_app_answer, from any thread, before the deadline. */
    /* The app does not handle this URL, event or notification; another app may. For other messages: TORPOR_DONE. */
    TORPOR_UNHANDLED = 3
} torpor_result;

/* What an app declines in its answer: bits of message->declines. */
enum {
    /* In an answer to a launch message: the URL that the app was launched with. */
    TORPOR_DECLINES_URL = 1,
    /* In an answer to will_finish_launching: the message restore_state. To scene_will_connect: the scene's state. */
    TORPOR_DECLINES_RESTORATION = 2,
    /* In an answer to did_enter_background or scene_did_enter_background: the snapshot, which is not kept. */
    TORPOR_DECLINES_SNAPSHOT = 4
};

/* The result of an app's check for new content. torpord chooses the time of the next check by the result. */
typedef enum torpor_fetched {
    TORPOR_FETCHED_UNKNOWN = 0,
    TORPOR_FETCHED_NEW_DATA = 1,
    TORPOR_FETCHED_NO_DATA = 2,
    TORPOR_FETCHED_FAILED = 3 /* The check failed. */
} torpor_fetched;

/* A message to the app; valid until the delegate's function returns. */
typedef struct torpor_message {
    int64_t id;                    /* The number of the message in this run of the app, from 1. */
    const char *name;              /* The name in the lifecycle, such as "didEnterBackground". */
    int64_t deadline_ms;           /* How long the app may take to answer; -1 for no limit. */
    const torpor_json *parameters; /* An object. */
    /* Parts of the answer, which the delegate's function sets: */
    const char *text;  /* For TORPOR_FAILED: the reason, a sentence; copied when the function returns. */
    unsigned declines; /* TORPOR_DECLINES_... */
    torpor_fetched fetched; /* For perform_fetch: the result of the check. */
} torpor_message;

/* How short memory is: on the machine, or for the app within its memory_limit. */
typedef enum torpor_level {
    TORPOR_LEVEL_WARNING = 1,  /* Also stands for any level that this library does not know. */
    TORPOR_LEVEL_CRITICAL = 2, /* torpord is about to end apps. */
    TORPOR_LEVEL_LIMIT = 3     /* The app is close to its memory_limit. */
} torpor_level;

/* A background task whose time is almost up. */
typedef struct torpor_task {
    int64_t token;
    const char *name;
    int64_t remaining_ms; /* -1 if unknown. */
} torpor_task;

/* Mail that waited in the app's mailbox. */
typedef struct torpor_mail {
    int64_t id;        /* Unique. Each piece of mail is delivered once. */
    const char *topic; /* The subject of the mail. */
    const char *key;   /* A part of the topic; NULL for none. */
    const torpor_json *payload;
    const char *sender;
    int64_t count;    /* How many pieces of mail were merged into this one. */
    int64_t first_at; /* When the first and the last of them arrived, in microseconds since 1970. */
    int64_t last_at;
} torpor_mail;

/* The download or upload that a message is about. */
typedef struct torpor_transfer {
    int64_t id;          /* From torpor_app_start_transfer; 0 in handle_events_for_background_transfer. */
    const char *session; /* The group of transfers that this one belongs to. */
    const char *url;     /* The source of a download, or the destination of an upload. */
    const char *path;    /* The absolute path of the file. */
    int64_t bytes;       /* How many bytes of the file were received or sent. */
    int64_t status;      /* The HTTP status of the server's last answer; -1 without an answer. */
    const char *sha256;  /* The hash of a downloaded file, 64 hexadecimal digits. */
    const char *error;   /* A sentence; NULL if the transfer has succeeded. */
    const char *realm;   /* transfer_needs_login: the part of the server that needs the login. */
    const char *scheme;  /* transfer_needs_login: the authentication scheme, such as "basic". */
} torpor_transfer;

/* A scene. In messages whose names begin with scene_: a scene inside the app. In launch messages: the scene that the
 * app itself is. */
typedef struct torpor_scene {
    const char *name;           /* NULL if the app is not a scene. */
    const torpor_json *session; /* The object that the scene was opened with; NULL if it was opened without one. */
    /* scene_will_connect: */
    bool is_foreground;     /* Whether the scene is about to enter the foreground. */
    bool is_new;            /* Whether the scene connects for the first time. */
    const char *state_path; /* The scene's saved state (torpor_app_read_state); NULL for none. */
    int64_t state_bytes;
    const char *cgroup; /* The scene's cgroup directory, for its processes (scenes.cgroups); NULL for none. */
} torpor_scene;

/* A change of the wall clock, the time zone or the day. */
typedef struct torpor_time_change {
    bool clock_was_set;
    const char *time_zone; /* Such as "Europe/Berlin"; NULL if unchanged. */
    int64_t utc_offset_s;  /* Seconds east of UTC; TORPOR_SAME_OFFSET if unchanged. */
    const char *day;       /* Such as "2026-11-23"; NULL if unchanged. */
} torpor_time_change;

#define TORPOR_SAME_OFFSET INT64_MIN

/* Data of messages. The functions return NULL, 0 or the like for a message without this data. All results are valid as
 * long as the message is. */

/* open_url: the URL to open. */
const char *torpor_message_url(const torpor_message *message);
/* open_url: the app that opened the URL; NULL for a user. */
const char *torpor_message_source(const torpor_message *message);
/* open_url: the media type of a file, such as "text/markdown"; NULL if the URL is not a file. */
const char *torpor_message_media_type(const torpor_message *message);
/* will_terminate: why the app is being ended, such as "stopped". */
const char *torpor_message_reason(const torpor_message *message);
/* resumed: how many seconds the app was suspended. */
double torpor_message_gap(const torpor_message *message);
/* will_finish_launching, did_finish_launching: why the app was launched (reason, foreground, event, ...). */
const torpor_json *torpor_message_options(const torpor_message *message);
/* task_expiring: the task whose time is almost up. */
torpor_task torpor_message_task(const torpor_message *message);
/* did_receive_memory_warning: how short memory is. */
torpor_level torpor_message_level(const torpor_message *message);
/* An alert of the app that became due while the app was in the foreground, or that a user answered. */
typedef struct torpor_alert {
    const char *id;               /* The app's name for the alert. */
    int64_t scheduled_at;         /* The time that the alert was scheduled for, in microseconds since 1970. */
    const torpor_json *payload;   /* The payload that the app gave the alert. */
    const char *action;           /* "default" for the alert itself, or an action's id; NULL if no user answered. */
    const char *activation_token; /* A token that a window manager may require before it raises the app's window. */
} torpor_alert;

/* did_receive_event and the functions after it in torpor_delegate, except `other`. */
torpor_mail torpor_message_mail(const torpor_message *message);
/* Messages whose names begin with scene_, will_finish_launching, did_finish_launching: the scene. */
torpor_scene torpor_message_scene(const torpor_message *message);
/* did_discard_scenes: the name of the scene with this index, from 0; NULL after the last one. */
const char *torpor_message_discarded(const torpor_message *message, size_t index);
/* handle_events_for_background_transfer, transfer_did_finish, transfer_needs_login: the transfer. */
torpor_transfer torpor_message_transfer(const torpor_message *message);
/* did_receive_local_notification: the alert. */
torpor_alert torpor_message_alert(const torpor_message *message);
/* settings_did_change, identity_did_change: the name of the changed setting with this index, from 0; NULL after the
 * last one. There are no names if a file has changed. */
const char *torpor_message_changed(const torpor_message *message, size_t index);
/* restore_state, scene_will_connect: the path of the saved state. settings_did_change, identity_did_change: the path
 * of the changed file. */
const char *torpor_message_path(const torpor_message *message);
/* refresh: what must be refreshed, from 0 up to NULL; "*" stands for everything. */
const char *torpor_message_refresh(const torpor_message *message, size_t index);
/* What a user was doing in another app, or in this app on another machine. */
typedef struct torpor_activity {
    const char *type;            /* Such as "org.example.note". */
    const char *title;           /* continue_activity: what users see; may be empty. */
    const torpor_json *payload;  /* continue_activity: an object, or null. */
    const char *url;             /* continue_activity: a URL that stands for it; NULL for none. */
    const char *source;          /* continue_activity: the app whose activity it is; NULL for one of another machine. */
    const char *reason;          /* did_fail_to_continue_activity: why it does not come. */
    const char *by;              /* activity_was_continued: the app that continues it. */
} torpor_activity;
/* will_continue_activity, continue_activity, did_fail_to_continue_activity, activity_was_continued: the activity. */
torpor_activity torpor_message_activity(const torpor_message *message);
/* significant_time_change: the change. */
torpor_time_change torpor_message_time_change(const torpor_message *message);

typedef torpor_result torpor_handler(torpor_app *app, torpor_message *message, void *context);

/* An app's functions for messages. Set the whole structure to zero first, then the functions that the app has. */
typedef struct torpor_delegate {
    torpor_handler *will_finish_launching;      /* torpor_message_options */
    torpor_handler *restore_state;              /* torpor_app_read_state */
    torpor_handler *did_finish_launching;       /* torpor_message_options. From here on a server accepts clients. */
    torpor_handler *open_url;                   /* torpor_message_url */
    torpor_handler *did_become_active;
    torpor_handler *will_resign_active;
    /* Save the state: torpor_app_save_state. Comes again before a suspension, after an event woke the app. */
    torpor_handler *did_enter_background;
    torpor_handler *will_enter_foreground;
    torpor_handler *resumed;                    /* torpor_message_gap */
    torpor_handler *task_expiring;              /* torpor_message_task */
    torpor_handler *did_receive_memory_warning; /* torpor_message_level */
    torpor_handler *perform_fetch;              /* Check for new content, and set message->fetched. */
    /* torpor_message_reason. Save the state here too: a shutdown tells an app in the foreground no other message. */
    torpor_handler *will_terminate;
    /* Messages about scenes inside the app (scenes = { inside = true }), each with torpor_message_scene. An app with
     * such scenes gets these messages for each scene. It never gets did_become_active, will_resign_active,
     * did_enter_background and will_enter_foreground for itself. If scene_will_connect returns TORPOR_FAILED, the
     * scene is not connected, and the client that opened the scene gets message->text. */
    torpor_handler *scene_will_connect;
    torpor_handler *scene_did_become_active;
    torpor_handler *scene_will_resign_active;
    torpor_handler *scene_did_enter_background; /* Save the scene's state: torpor_app_save_scene_state */
    torpor_handler *scene_will_enter_foreground;
    torpor_handler *scene_did_disconnect;       /* Free the scene's memory; the scene may connect again later. */
    torpor_handler *did_receive_event;          /* From a timer, path, device ..., or posted: torpor_message_mail */
    torpor_handler *did_receive_notification;   /* About the machine (power, screens ...): torpor_message_mail */
    torpor_handler *did_receive_remote_notification; /* From another machine: torpor_message_mail */
    torpor_handler *settings_did_change;        /* torpor_message_changed, torpor_message_path */
    torpor_handler *identity_did_change;        /* The app has another account now; data as for settings_did_change */
    torpor_handler *significant_time_change;    /* torpor_message_time_change */
    torpor_handler *protected_data_will_become_unavailable; /* The session was locked. */
    torpor_handler *protected_data_did_become_available;    /* The session was unlocked. */
    /* All transfers of a session have ended, or one waits for a login. Messages about these transfers follow. */
    torpor_handler *handle_events_for_background_transfer; /* torpor_message_transfer: session */
    torpor_handler *transfer_did_finish;        /* torpor_message_transfer */
    torpor_handler *transfer_needs_login;       /* torpor_message_transfer; torpor_app_answer_login */
    torpor_handler *did_receive_local_notification; /* torpor_message_alert; torpor_app_schedule_alert */
    /* These scenes were discarded: remove the data that the app has stored for them. */
    torpor_handler *did_discard_scenes;         /* torpor_message_discarded */
    /* The app comes to the foreground, and what torpor_app_set_needs_refresh and topics with refresh = true have named must
     * be refreshed first. */
    torpor_handler *refresh;                    /* torpor_message_refresh */
    /* What a user did in another app or on another machine is continued here, or does not come; another app has continued
     * this app's activity. All with torpor_message_activity. */
    torpor_handler *will_continue_activity;
    torpor_handler *continue_activity;
    torpor_handler *did_fail_to_continue_activity;
    torpor_handler *activity_was_continued;
    /* Called for every message whose function above is NULL, or that has none. */
    torpor_handler *other;
    /* Called before the first message, and again after the supervisor was replaced, with the app's situation (app,
     * incarnation, state, transition, options, tasks, scenes). An app that is not launched with ready = "delegate"
     * learns its state here, and so whether it is in use. */
    void (*attached)(torpor_app *app, const torpor_json *situation, void *context);
    /* Called after an error that does not stop the library, with a sentence for the app's log. Without this function
     * the sentence is written to standard error. */
    void (*problem)(torpor_app *app, const char *sentence, void *context);
} torpor_delegate;

/* ---- An app ------------------------------------------------------------------------------------------------------ */

enum {
    /* This process is not the app's delegate but a worker. It gets no messages, but may use tasks and states. */
    TORPOR_NO_MESSAGES = 1
};

/* Makes the caller the app's delegate, which gets the app's messages. Returns NULL with errno if memory or
 * descriptors are short. The structure is copied; without TORPOR_NO_MESSAGES it must not be NULL (EINVAL), a worker may
 * pass NULL, and its errors are then written to standard error. The first dispatch connects to the supervisor, and later ones
 * reconnect if needed. An app has only one delegate: while there is another, even in this process, `problem` is
 * called once, and the other one gets the messages. */
torpor_app *torpor_app_open(const torpor_delegate *delegate, void *context, unsigned flags);
/* Ends the app's tasks, connections and the library's thread. Must not be called from the delegate's functions. */
void torpor_app_close(torpor_app *app);

/* Whether the program runs under a supervisor: TORPOR_APP_SOCKET is set. */
bool torpor_app_supervised(const torpor_app *app);

/* A descriptor that is readable (POLLIN) when torpor_app_dispatch has something to do. */
int torpor_app_fd(const torpor_app *app);
/* Calls the delegate's functions for the messages that have arrived; does not wait. Returns the number of messages;
 * -ECHILD in a forked child. */
int torpor_app_dispatch(torpor_app *app);
/* Starts a thread that handles messages until torpor_app_close. All signals are blocked in the thread. */
int torpor_app_start(torpor_app *app);

/* Answers a message whose function returned TORPOR_LATER. Does not wait. text may be NULL. */
int torpor_app_answer(torpor_app *app, int64_t id, torpor_result result, const char *text, unsigned declines);
/* Answers perform_fetch, like torpor_app_answer. The result may be TORPOR_DONE even with TORPOR_FETCHED_FAILED. */
int torpor_app_answer_fetch(torpor_app *app, int64_t id, torpor_result result, const char *text,
                            torpor_fetched fetched);
/* Requests a later deadline for the answer to a message, which the app expects to give in expected_ms from now. The
 * app's extension_limit bounds the deadline. The deadline of did_enter_background is never extended. */
int torpor_app_pending(torpor_app *app, int64_t id, int64_t expected_ms, const char *text);

/* ---- Background tasks -------------------------------------------------------------------------------------------- */

/* Begins a task: in the background, the app is not suspended before the task has ended or its time is up. The name
 * has 1 to 128 bytes and no control characters (-EINVAL), and an app may have 64 tasks at a time (-EIO). Returns a
 * token, 1 or more. Stores in *remaining_ms how long the app may run, -1 for no limit now; remaining_ms may be NULL.
 * Waits for the supervisor's answer, for up to 10 s while the supervisor is being replaced. Tasks last until they are
 * ended or torpor_app_close is called. */
int64_t torpor_app_begin_task(torpor_app *app, const char *name, int64_t *remaining_ms);
/* Ends a task. It is not an error if the task has ended already. */
int torpor_app_end_task(torpor_app *app, int64_t token);
/* Stores in *remaining_ms how long the app may still run for its tasks; -1 for no limit now. */
int torpor_app_background_time(torpor_app *app, int64_t *remaining_ms);
/* Whether the time for the app's tasks is almost up: 1 from expiry_warning before its end on, else 0. task_expiring says
 * the same, but it waits while another message is not answered, and only the delegate gets it: a function of the
 * delegate and a worker that work for a task call this from time to time. */
int torpor_app_is_expiring(torpor_app *app);

/* ---- Other apps -------------------------------------------------------------------------------------------------- */

/* Makes another app open a URL, and brings that app to the foreground. may_open of this app must name the URL's
 * scheme (else -EPERM). Returns 0 when the URL is stored durably, not when it is opened; -ENOENT if no app opens such
 * URLs. */
int torpor_app_open_url(torpor_app *app, const char *url);
/* Whether another app opens URLs of the scheme: 1 or 0; -EPERM if may_open of this app does not name the scheme. */
int torpor_app_can_open(torpor_app *app, const char *scheme);

enum {
    TORPOR_TOPIC_URGENT = 1, /* The message wakes the app; of a subscription, each one does. */
    TORPOR_TOPIC_KEEP = 2    /* Of a subscription: messages stay queued until the app takes them. */
};
/* Posts a message to another app. payload is JSON of at most 64 KiB, or NULL. Returns when the message is on disk, with
 * its number in the other app's mailbox, or 0 if it cancelled out another message there. -EPERM if that app does not
 * accept messages from this one (accepts_from), -ENOENT if there is no such app, -EOPNOTSUPP if it does not accept the
 * topic, -ENOSPC if its mailbox is full, -EINVAL if the payload is not JSON. */
int64_t torpor_app_post(torpor_app *app, const char *to, const char *topic, const char *payload, unsigned flags);
/* Subscribes the app to messages of a topic, which may be a pattern of * and ?, as an entry of topics in its
 * configuration does. coalesce is "all", "latest", "count", "merge" or "net", NULL for the default. The subscription
 * survives restarts of the app, the supervisor and the machine. Without a supervisor it does nothing. */
int torpor_app_subscribe(torpor_app *app, const char *topic, const char *coalesce, unsigned flags);
/* Ends a subscription. */
int torpor_app_unsubscribe(torpor_app *app, const char *topic);
/* Takes messages from the app's mailbox, the first ones first, at most max (0: as many as fit into a reply): an array of
 * objects with id, topic, name, payload, sender and more, empty if none waits and without a supervisor. Free it with
 * torpor_json_free; NULL on failure: see torpor_app_last_error. Without keep, the messages are removed at once, and lost
 * if the program ends before it has handled them. With keep, a message stays until a later call has its id in done, an
 * array of `count` ids. */
torpor_json *torpor_app_take(torpor_app *app, int64_t max, bool keep, const int64_t *done, size_t count);

/* ---- Transfers --------------------------------------------------------------------------------------------------- */

enum {
    TORPOR_TRANSFER_DISCRETIONARY = 1,  /* The transfer may wait for good conditions. */
    TORPOR_TRANSFER_SILENT = 2          /* The end of the transfer does not wake the app. */
};
/* Requests the download of a file (direction "download"), or the upload by PUT ("upload"), which also runs while the
 * app sleeps. The message transfer_did_finish reports the end. file is a name below TORPOR_STATE_DIRECTORY, or a path
 * there or in one of the app's data folders. session names a group of transfers, NULL for "default". Returns the
 * transfer's number, 1 or more, when the request is stored durably. */
int64_t torpor_app_start_transfer(torpor_app *app, const char *direction, const char *url, const char *file,
                                  const char *session, unsigned flags);
/* Cancels a transfer. The app gets no message about the end of the transfer. */
int torpor_app_cancel_transfer(torpor_app *app, int64_t id);
/* Answers transfer_needs_login with a user and a password. If user is NULL, the transfer fails. */
int torpor_app_answer_login(torpor_app *app, int64_t id, const char *user, const char *password);

/* ---- Alerts ------------------------------------------------------------------------------------------------------ */

/* An alert for users. Set unused members to NULL, 0 or false. */
typedef struct torpor_alert_request {
    const char *title;     /* One line of at most 80 characters. */
    const char *id;        /* The app's name for the alert; replaces an alert of the same name. */
    const char *body;      /* More text, at most 1 KiB. */
    const char *at;        /* A time in RFC 3339; without an offset, local time in time_zone; or 14:30. */
    const char *time_zone; /* "local" (the default), or a name such as "Europe/Berlin". */
    int64_t after_ms;      /* Milliseconds from now. Without at, after_ms and calendar, the alert is due now. */
    const char *calendar;  /* Repeats the alert, as in systemd's timers: "Mon..Fri 9:55". */
    const char *urgency;   /* "low", "normal" (the default) or "critical". */
    const char *sound;     /* A name of the XDG sound theme. */
    const char *url;       /* Opened when a user chooses the alert. */
    const char *actions;   /* JSON: [{"id":"later","label":"Later"}] */
    const char *payload;   /* JSON that the app gets with the alert's message. */
    bool wake;             /* Whether the alert also wakes the app into the background. */
} torpor_alert_request;

/* Schedules an alert for users. If the app is in the foreground when the alert is due, the app gets a message instead.
 * Returns 0 when the alert is stored durably; -EINVAL if a part of it is invalid, -ENOSPC if too many are scheduled. */
int torpor_app_schedule_alert(torpor_app *app, const torpor_alert_request *alert);
/* Cancels the alert with this id, whether scheduled or shown (-ENOENT if there is none); NULL for all alerts of the
 * app. */
int torpor_app_cancel_alert(torpor_app *app, const char *id);
/* Shows a number, 1 to 9999, at the app's desktop entry; 0 removes the number. */
int torpor_app_set_badge(torpor_app *app, int64_t count);

/* ---- Permissions ------------------------------------------------------------------------------------------------- */

/* The state of a permission of a sandboxed app. */
enum {
    TORPOR_PERMISSION_DENY = 0,
    TORPOR_PERMISSION_ALLOW = 1,
    TORPOR_PERMISSION_ASK = 2 /* Withheld until a user answers. */
};
typedef struct torpor_question {
    bool asked;      /* Whether users are being asked now. */
    int64_t next_at; /* If it is too soon to ask users: when they can be asked, microseconds since 1970; else 0. */
} torpor_question;
/* The state of a permission that the app declares; -ENOENT for any other permission. */
int torpor_app_permission(torpor_app *app, const char *name);
/* The state of a permission that the app declares. If no user has answered yet, torpord also asks users: once, and at
 * most once an hour for each app. Does not wait for the answer. question may be NULL. Without a supervisor, the
 * permission counts as allowed. */
int torpor_app_request_permission(torpor_app *app, const char *name, torpor_question *question);

/* Names count things that must be refreshed before people see the app again. The names gather while it is not in the
 * foreground, and refresh gets them when it comes there, or at once. Without a supervisor it does nothing. */
int torpor_app_set_needs_refresh(torpor_app *app, const char *const *names, size_t count);

/* ---- Activities -------------------------------------------------------------------------------------------------- */

/* What a user is doing in the app, which must be in the foreground: another app, or the app on another machine, can continue
 * it. Set the whole structure to zero first. */
typedef struct torpor_current_activity {
    const char *type;    /* Such as "org.example.note". */
    const char *title;   /* What users see; may be NULL. */
    const char *payload; /* JSON, an object of at most 64 KiB; may be NULL. */
    const char *url;     /* A URL that stands for it; may be NULL. */
    bool needs_state;    /* It can only be continued with the state that the app has saved. */
} torpor_current_activity;

/* Sets the current activity. It ends with the next one, with torpor_app_end_activity, with the app, and five minutes after
 * the app has left the foreground. Without a supervisor it does nothing. */
int torpor_app_set_activity(torpor_app *app, const torpor_current_activity *activity);
/* Ends the current activity. Without a supervisor it does nothing. */
int torpor_app_end_activity(torpor_app *app);

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

/* The app's settings: an object with a member for each setting, null if the setting has no value. Durations are in
 * seconds, sizes in bytes. Free the object with torpor_json_free. NULL on failure: see torpor_app_last_error. */
torpor_json *torpor_app_settings(torpor_app *app);
/* Sets a `writable` setting of the app to a value in JSON, such as "8001" or "\"dark\""; NULL sets the default again.
 * The app gets no message about this change. Returns 1 when the value is on disk and in the settings file, 0 if the
 * setting has this value already, -EINVAL if the text is not JSON or the setting cannot have the value, -ENOENT if there
 * is no such setting, -EPERM if the app may not set it. */
int torpor_app_set_setting(torpor_app *app, const char *name, const char *json);

/* ---- State ------------------------------------------------------------------------------------------------------- */

/* Saves bytes as the app's state, for restore_state at the next launch after an eviction, a crash or a boot. Returns
 * when they are durable. More than 384 KiB are passed in a file in TORPOR_STATE_DIRECTORY. */
int torpor_app_save_state(torpor_app *app, const void *bytes, size_t size);
/* Saves the content of a file as the app's state. The file is given by its name in TORPOR_STATE_DIRECTORY, and
 * copied. */
int torpor_app_save_state_file(torpor_app *app, const char *name);
/* Removes the app's saved state. */
int torpor_app_discard_state(torpor_app *app);
/* The same functions for the state of a scene inside the app, given by its name. scene_will_connect gets that state. */
int torpor_app_save_scene_state(torpor_app *app, const char *scene, const void *bytes, size_t size);
int torpor_app_save_scene_state_file(torpor_app *app, const char *scene, const char *name);
int torpor_app_discard_scene_state(torpor_app *app, const char *scene);
/* Reads the saved state that a restore_state or scene_will_connect message names. Free the returned bytes with free.
 * They are followed by a NUL that *size does not count. Returns NULL with errno on failure, EINVAL if there is no
 * state. */
void *torpor_app_read_state(const torpor_message *message, size_t *size);

/* ---- Snapshots --------------------------------------------------------------------------------------------------- */

/* Saves a snapshot of what the app shows: a picture (PNG, JPEG, GIF, WebP) or a text in UTF-8, of at most 4 MiB. The
 * app must be in the background, or be answering did_enter_background. Returns 0 when the snapshot is durable. */
int torpor_app_save_snapshot(torpor_app *app, const void *bytes, size_t size);
/* Saves the content of a file as a snapshot. The file is given by its name in TORPOR_STATE_DIRECTORY, and copied. */
int torpor_app_save_snapshot_file(torpor_app *app, const char *name);
/* Removes the app's snapshot. No other one is taken before the app enters the background again. */
int torpor_app_discard_snapshot(torpor_app *app);
/* The same functions for a scene inside the app, given by its name. The scene must be in the background, or the app be
 * answering scene_did_enter_background. */
int torpor_app_save_scene_snapshot(torpor_app *app, const char *scene, const void *bytes, size_t size);
int torpor_app_save_scene_snapshot_file(torpor_app *app, const char *scene, const char *name);
int torpor_app_discard_scene_snapshot(torpor_app *app, const char *scene);

/* ---- Other ------------------------------------------------------------------------------------------------------- */

/* Copies a sentence about the last error into text, "" if there was none. */
void torpor_app_last_error(torpor_app *app, char *text, size_t size);
/* Sends a datagram of the sd_notify protocol, such as "STATUS=Reading the index." or "WATCHDOG=1". Returns 0 even if
 * no receiver exists. The library sends no heartbeats, not even from its thread: if the app has a watchdog, the program
 * sends WATCHDOG=1 from its own loop, at least twice in the interval (WATCHDOG_USEC). */
int torpor_app_notify(const char *state);

#ifdef __cplusplus
}
#endif

#endif
