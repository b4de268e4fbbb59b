/* SPDX-License-Identifier: Apache-2.0 */

/* torpor_app.h: what a program in C needs to know its lifecycle under Torpor.
 *
 * Put torpor_app.h and torpor_app.c into your sources and compile them with C99 or later (-pthread where the C library
 * wants it); nothing else is needed. An app opens one torpor_app, and then either lets a thread of the library call its
 * functions (torpor_app_start), or waits for torpor_app_fd in a poll loop of its own and calls torpor_app_dispatch:
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
 * Messages come one at a time, in order, each once: also when the supervisor is replaced or restarted meanwhile. A
 * function that a delegate does not have counts as done at once; of a URL and of what waited in the app's mailbox it
 * counts as TORPOR_UNHANDLED. Where a program runs without a supervisor, since
 * somebody started it in a shell, it hears will_finish_launching, did_finish_launching and did_become_active as at a
 * launch into the foreground, tasks are not limited, and saving a state is an error (-ENOTCONN).
 *
 * Functions that can fail return 0 or more, or -errno; torpor_app_last_error has the sentence. All may be called from
 * any thread, except torpor_app_dispatch, torpor_app_start and torpor_app_close, which belong to the thread that opened.
 * After a fork without exec a child must not use its parent's torpor_app: it opens one of its own.
 */
#ifndef TORPOR_APP_H
#define TORPOR_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this library: that of Torpor. */
#define TORPOR_APP_VERSION "0.2.0"

typedef struct torpor_app torpor_app;

/* ---- JSON, as far as messages need it ---------------------------------------------------------------------------- */

/* A value of a message's parameters. Every function below takes NULL for an absent value and gives what it gives for
 * one of another kind, so that questions can be nested. */
typedef struct torpor_json torpor_json;

/* Reads a text of `size` bytes; NULL for what is no JSON (RFC 8259), is nested deeper than 64, has an unpaired
 * surrogate or invalid UTF-8, or when there is no memory. Free it with torpor_json_free, which frees all below it. */
torpor_json *torpor_json_read(const char *text, size_t size);
void torpor_json_free(torpor_json *json);

/* The value of a key of an object, of two equal keys that of the first; NULL where there is none. */
const torpor_json *torpor_json_get(const torpor_json *object, const char *key);
/* How many elements an array or an object has, and one of them, from 0. */
size_t torpor_json_count(const torpor_json *json);
const torpor_json *torpor_json_at(const torpor_json *json, size_t index);
/* The key of an element of an object. */
const char *torpor_json_key(const torpor_json *json);
bool torpor_json_is_null(const torpor_json *json);
/* A string's UTF-8, ended by NUL; its length, since it may have others inside, in *length where that is not NULL. */
const char *torpor_json_string(const torpor_json *json, size_t *length);
/* A number; `otherwise` for all else. Integers are those without a fraction and exponent that fit. */
int64_t torpor_json_int(const torpor_json *json, int64_t otherwise);
double torpor_json_double(const torpor_json *json, double otherwise);
bool torpor_json_bool(const torpor_json *json, bool otherwise);

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* What an app says to a message. */
typedef enum torpor_result {
    TORPOR_DONE = 0,   /* It has done what there was to do. */
    TORPOR_FAILED = 1, /* It could not; message->text says why. */
    TORPOR_LATER = 2,  /* torpor_app_answer will say it, from any thread, before the deadline. */
    /* It has no use for it, and another app may be told: of a URL, and of what waited in the mailbox. Else as done. */
    TORPOR_UNHANDLED = 3
} torpor_result;

/* What an app does not want of what it is offered: bits of message->declines. */
enum {
    /* In an answer to a launch message: the URL. */
    TORPOR_DECLINES_URL = 1,
    /* In an answer to will_finish_launching: restore_state. In one to scene_will_connect: the scene's state. */
    TORPOR_DECLINES_RESTORATION = 2,
    /* In an answer to did_enter_background or scene_did_enter_background: that a snapshot is kept. */
    TORPOR_DECLINES_SNAPSHOT = 4
};

/* What an app found that looked for new content; the next time is chosen by it. */
typedef enum torpor_fetched {
    TORPOR_FETCHED_UNKNOWN = 0,
    TORPOR_FETCHED_NEW_DATA = 1,
    TORPOR_FETCHED_NO_DATA = 2,
    TORPOR_FETCHED_FAILED = 3 /* It could not look. */
} torpor_fetched;

/* Something that the app is told; valid until its function returns. */
typedef struct torpor_message {
    int64_t id;                    /* Counts the messages of this run of the app, from 1. */
    const char *name;              /* As the lifecycle names it: "didEnterBackground". */
    int64_t deadline_ms;           /* How long the app may take to answer, -1 without a bound. */
    const torpor_json *parameters; /* An object. */
    /* Of the answer, to be set by the function: */
    const char *text;  /* A sentence, for TORPOR_FAILED; copied when the function returns. */
    unsigned declines; /* TORPOR_DECLINES_... */
    torpor_fetched fetched; /* For perform_fetch: what there was. */
} torpor_message;

/* How short memory is: that of the machine, or that of the app within its own limit. */
typedef enum torpor_level {
    TORPOR_LEVEL_WARNING = 1,  /* Also a level that this library does not know. */
    TORPOR_LEVEL_CRITICAL = 2, /* Apps are about to be ended. */
    TORPOR_LEVEL_LIMIT = 3     /* The app comes near its memory_limit. */
} torpor_level;

/* A background task whose time is almost up. */
typedef struct torpor_task {
    int64_t token;
    const char *name;
    int64_t remaining_ms; /* -1 where it is not said. */
} torpor_task;

/* What waited in the app's mailbox. */
typedef struct torpor_mail {
    int64_t id;        /* No other has it: each is told once. */
    const char *topic; /* What it is about. */
    const char *key;   /* What of the topic; NULL for none. */
    const torpor_json *payload;
    const char *sender;
    int64_t count;    /* How many became one in it. */
    int64_t first_at; /* When the first and the last of them came, in microseconds since 1970. */
    int64_t last_at;
} torpor_mail;

/* A download or upload, of which the message tells. */
typedef struct torpor_transfer {
    int64_t id;          /* As torpor_app_start_transfer gave it; 0 in handle_events_for_background_transfer. */
    const char *session; /* What it belongs with. */
    const char *url;     /* From where, or to where. */
    const char *path;    /* The file, from the root of the file system. */
    int64_t bytes;       /* Of the file that are there, or were sent. */
    int64_t status;      /* Of the server's last answer, -1 without one. */
    const char *sha256;  /* Of a file that was downloaded, 64 hexadecimal digits. */
    const char *error;   /* A sentence; NULL where the transfer is done. */
    const char *realm;   /* transfer_needs_login: what of the server the login is for. */
    const char *scheme;  /* transfer_needs_login: how the server wants it, such as "basic". */
} torpor_transfer;

/* A scene: one inside the app, in the messages that begin with scene_; the one that the app itself is, in launch
 * messages. */
typedef struct torpor_scene {
    const char *name;           /* NULL for an app that is no scene. */
    const torpor_json *session; /* The object that the scene was opened with; NULL if it was opened without one. */
    /* scene_will_connect: */
    bool is_foreground;     /* It is about to enter the foreground. */
    bool is_new;            /* It connects for the first time. */
    const char *state_path; /* The archive that it saved of itself (torpor_app_read_state); NULL for none. */
    int64_t state_bytes;
    const char *cgroup; /* The directory of its cgroup, for processes that work for it (scenes.cgroups); NULL for none. */
} torpor_scene;

/* What became of the clock. */
typedef struct torpor_time_change {
    bool clock_was_set;
    const char *time_zone; /* "Europe/Berlin"; NULL where it is as before. */
    int64_t utc_offset_s;  /* Seconds to the east of UTC, TORPOR_SAME_OFFSET where it is as before. */
    const char *day;       /* "2026-11-23"; NULL where it is as before. */
} torpor_time_change;

#define TORPOR_SAME_OFFSET INT64_MIN

/* What belongs to messages; of another message, or where the supervisor does not say it, NULL, 0 or the like. All of it
 * is valid as long as the message is. */

/* open_url: what to open. */
const char *torpor_message_url(const torpor_message *message);
/* open_url: the app that opened it, NULL for a person. */
const char *torpor_message_source(const torpor_message *message);
/* open_url: the media type of a file, such as "text/markdown", NULL for anything else. */
const char *torpor_message_media_type(const torpor_message *message);
/* will_terminate: why the app is ended, such as "stopped". */
const char *torpor_message_reason(const torpor_message *message);
/* resumed: for how many seconds the app was stopped. */
double torpor_message_gap(const torpor_message *message);
/* will_finish_launching, did_finish_launching: why the app was launched (reason, foreground, event, ...). */
const torpor_json *torpor_message_options(const torpor_message *message);
/* task_expiring. */
torpor_task torpor_message_task(const torpor_message *message);
/* did_receive_memory_warning. */
torpor_level torpor_message_level(const torpor_message *message);
/* did_receive_event and all below it in torpor_delegate, but for `other`. */
/* An alert of the app that came while it was in the foreground, or that a person answered. */
typedef struct torpor_alert {
    const char *id;               /* The app's name for it. */
    int64_t scheduled_at;         /* For when it was scheduled, microseconds since 1970. */
    const torpor_json *payload;   /* What the app gave with it. */
    const char *action;           /* "default" for the alert itself, or the action's id; NULL where it came. */
    const char *activation_token; /* What a window manager wants to see before it raises the app's window. */
} torpor_alert;

torpor_mail torpor_message_mail(const torpor_message *message);
/* The functions that begin with scene_, will_finish_launching and did_finish_launching. */
torpor_scene torpor_message_scene(const torpor_message *message);
/* did_discard_scenes: the scenes' names, from 0 up to NULL. */
const char *torpor_message_discarded(const torpor_message *message, size_t index);
/* handle_events_for_background_transfer, transfer_did_finish, transfer_needs_login. */
torpor_transfer torpor_message_transfer(const torpor_message *message);
/* did_receive_local_notification. */
torpor_alert torpor_message_alert(const torpor_message *message);
/* settings_did_change, identity_did_change: the settings' names, from 0 up to NULL. None where a file changed. */
const char *torpor_message_changed(const torpor_message *message, size_t index);
/* restore_state, scene_will_connect: where the archive is. settings_did_change, identity_did_change: the file that
 * changed. */
const char *torpor_message_path(const torpor_message *message);
/* refresh: what must be refreshed, from 0 up to NULL; "*" stands for everything. */
const char *torpor_message_refresh(const torpor_message *message, size_t index);
/* significant_time_change. */
torpor_time_change torpor_message_time_change(const torpor_message *message);

typedef torpor_result torpor_handler(torpor_app *app, torpor_message *message, void *context);

/* The functions of an app. Set all to zero and then those that are wanted. */
typedef struct torpor_delegate {
    torpor_handler *will_finish_launching;      /* torpor_message_options */
    torpor_handler *restore_state;              /* torpor_app_read_state */
    torpor_handler *did_finish_launching;       /* torpor_message_options */
    torpor_handler *open_url;                   /* torpor_message_url */
    torpor_handler *did_become_active;
    torpor_handler *will_resign_active;
    torpor_handler *did_enter_background;
    torpor_handler *will_enter_foreground;
    torpor_handler *resumed;                    /* torpor_message_gap */
    torpor_handler *task_expiring;              /* torpor_message_task */
    torpor_handler *did_receive_memory_warning; /* torpor_message_level */
    torpor_handler *perform_fetch;              /* It is time to look for new content; sets message->fetched. */
    torpor_handler *will_terminate;             /* torpor_message_reason */
    /* Scenes inside the app (scenes = { inside = true }), each with torpor_message_scene. Such an app is told
     * did_become_active, will_resign_active, did_enter_background and will_enter_foreground for each scene by these, and
     * never for itself. With TORPOR_FAILED the scene is not connected, and message->text is reported to the client that
     * opened it. */
    torpor_handler *scene_will_connect;
    torpor_handler *scene_did_become_active;
    torpor_handler *scene_will_resign_active;
    torpor_handler *scene_did_enter_background; /* Save its state: torpor_app_save_scene_state */
    torpor_handler *scene_will_enter_foreground;
    torpor_handler *scene_did_disconnect;       /* Free what it holds; it may connect again later. */
    torpor_handler *did_receive_event;          /* Of a timer, path, device ..., or posted: torpor_message_mail */
    torpor_handler *did_receive_notification;   /* Of the machine (power, screens ...): torpor_message_mail */
    torpor_handler *did_receive_remote_notification; /* From outside of the machine: torpor_message_mail */
    torpor_handler *settings_did_change;        /* torpor_message_changed, torpor_message_path */
    torpor_handler *identity_did_change;        /* Another account is the app's: as settings_did_change */
    torpor_handler *significant_time_change;    /* torpor_message_time_change */
    torpor_handler *protected_data_will_become_unavailable; /* The session was locked. */
    torpor_handler *protected_data_did_become_available;    /* It was unlocked. */
    /* All transfers of a session are over, or one waits for a login: what became of them follows. */
    torpor_handler *handle_events_for_background_transfer; /* torpor_message_transfer: session */
    torpor_handler *transfer_did_finish;        /* torpor_message_transfer */
    torpor_handler *transfer_needs_login;       /* torpor_message_transfer; torpor_app_answer_login */
    torpor_handler *did_receive_local_notification; /* torpor_message_alert; torpor_app_schedule_alert */
    /* Scenes that no longer exist: remove what the app keeps of them. */
    torpor_handler *did_discard_scenes;         /* torpor_message_discarded */
    /* The app comes to the foreground, and what torpor_app_set_needs_refresh and topics with refresh = true have named must
     * be refreshed first. */
    torpor_handler *refresh;                    /* torpor_message_refresh */
    /* Every message that has no function above, or NULL there. */
    torpor_handler *other;
    /* Before the first message, and again when the supervisor was replaced: how the app is (app, incarnation, state,
     * transition, options, tasks, scenes). Whoever is not launched with ready = "delegate" learns here whether it is in
     * use. */
    void (*attached)(torpor_app *app, const torpor_json *situation, void *context);
    /* Something went wrong that the library goes on after, in a sentence: for the app's log. */
    void (*problem)(torpor_app *app, const char *sentence, void *context);
} torpor_delegate;

/* ---- An app ------------------------------------------------------------------------------------------------------ */

enum {
    /* This process is not the app's delegate, as a worker of its: it gets no messages, but may use tasks and states. */
    TORPOR_NO_MESSAGES = 1
};

/* Makes the caller the app's delegate; NULL without memory or descriptors (errno). The structure is copied. The
 * connection is made by the first dispatch, and again whenever it breaks. An app has one delegate: while there is another,
 * in this process too, `problem` says so once, and the messages are the other's. */
torpor_app *torpor_app_open(const torpor_delegate *delegate, void *context, unsigned flags);
/* Ends tasks, connections and the thread. Not from one of the delegate's functions. */
void torpor_app_close(torpor_app *app);

/* True when there is a supervisor: TORPOR_APP_SOCKET is set. */
bool torpor_app_supervised(const torpor_app *app);

/* A descriptor that is readable (POLLIN) when torpor_app_dispatch has something to do. */
int torpor_app_fd(const torpor_app *app);
/* Does it, without waiting: calls the delegate's functions. Returns how many messages were handled. */
int torpor_app_dispatch(torpor_app *app);
/* Starts a thread with all signals blocked that dispatches until torpor_app_close. */
int torpor_app_start(torpor_app *app);

/* The answer to a message whose function returned TORPOR_LATER; does not wait. text may be NULL. */
int torpor_app_answer(torpor_app *app, int64_t id, torpor_result result, const char *text, unsigned declines);
/* The answer to performFetch, as above; with TORPOR_FETCHED_FAILED it may be TORPOR_DONE all the same. */
int torpor_app_answer_fetch(torpor_app *app, int64_t id, torpor_result result, const char *text,
                            torpor_fetched fetched);
/* Says that the answer to a message takes about so long from now, for a longer deadline, where the app's
 * extension_limit allows it; that of did_enter_background is never longer. */
int torpor_app_pending(torpor_app *app, int64_t id, int64_t expected_ms, const char *text);

/* ---- Background tasks -------------------------------------------------------------------------------------------- */

/* Begins a task: in the background the app is not suspended before the task has ended or its time is up. Its name has 1 to
 * 128 bytes (-EINVAL), and an app has up to 64 tasks at a time (-EIO). Returns a token, 1 or more. *remaining_ms (may be NULL) is how long the app may run, -1 for no limit now. Waits for the
 * supervisor, for up to 10 s while it is being replaced. Tasks last until they are ended or the app is closed. */
int64_t torpor_app_begin_task(torpor_app *app, const char *name, int64_t *remaining_ms);
/* Ends it; a task whose end is known already is no error. */
int torpor_app_end_task(torpor_app *app, int64_t token);
/* How long the app may still run for its tasks, in *remaining_ms, -1 for no limit now. */
int torpor_app_background_time(torpor_app *app, int64_t *remaining_ms);

/* ---- Other apps -------------------------------------------------------------------------------------------------- */

/* Has another app open a URL, whose scheme may_open of this app names (else -EPERM); that app is brought to the foreground
 * for it. Returns 0 when the URL is durable, not when it is opened; -ENOENT where no app opens it. */
int torpor_app_open_url(torpor_app *app, const char *url);
/* Whether another app opens URLs of the scheme: 1 or 0; -EPERM where may_open of this app does not name the scheme. */
int torpor_app_can_open(torpor_app *app, const char *scheme);

/* ---- Transfers --------------------------------------------------------------------------------------------------- */

enum {
    TORPOR_TRANSFER_DISCRETIONARY = 1,  /* It waits for a good moment. */
    TORPOR_TRANSFER_SILENT = 2          /* Its end does not wake the app. */
};
/* Has a file downloaded (direction "download") or uploaded by PUT ("upload"), also while the app sleeps;
 * transfer_did_finish tells the end. file is a name below TORPOR_STATE_DIRECTORY, or a path there or in one of the app's
 * data folders; session groups transfers, NULL for "default". Returns the transfer's number, 1 or more, once it is durable. */
int64_t torpor_app_start_transfer(torpor_app *app, const char *direction, const char *url, const char *file,
                                  const char *session, unsigned flags);
/* Ends a transfer; the app is not told of its end. */
int torpor_app_cancel_transfer(torpor_app *app, int64_t id);
/* Answers transfer_needs_login by user and password; a user of NULL has the transfer fail. */
int torpor_app_answer_login(torpor_app *app, int64_t id, const char *user, const char *password);

/* ---- Alerts ------------------------------------------------------------------------------------------------------ */

/* An alert for people. Leave out what is not wanted: NULL, 0, false. */
typedef struct torpor_alert_request {
    const char *title;     /* One line of at most 80 characters. */
    const char *id;        /* The app's name for it; one of the same name is replaced. */
    const char *body;      /* More text, at most 1 KiB. */
    const char *at;        /* RFC 3339, or without an offset a local time in time_zone; or only 14:30. */
    const char *time_zone; /* "local" (the default), or such as "Europe/Berlin". */
    int64_t after_ms;      /* From now. Without at, after_ms and calendar it comes now. */
    const char *calendar;  /* Again and again, as in systemd's timers: "Mon..Fri 9:55". */
    const char *urgency;   /* "low", "normal" (the default) or "critical". */
    const char *sound;     /* A name of the XDG sound theme. */
    const char *url;       /* What to open when a person chooses it. */
    const char *actions;   /* JSON: [{"id":"later","label":"Later"}] */
    const char *payload;   /* JSON that the app is told with it. */
    bool wake;             /* Also wake the app in the background when it comes. */
} torpor_alert_request;

/* Shows people an alert; where the app is in the foreground it is told instead. 0 once the alert is durable. */
int torpor_app_schedule_alert(torpor_app *app, const torpor_alert_request *alert);
/* Cancels the alert of that id, scheduled or open; NULL for all. */
int torpor_app_cancel_alert(torpor_app *app, const char *id);
/* Shows a number, 1 to 9999, at the app's entry, or with 0 none. */
int torpor_app_set_badge(torpor_app *app, int64_t count);

/* ---- Permissions ------------------------------------------------------------------------------------------------- */

/* What applies to a permission of an app in a sandbox. */
enum {
    TORPOR_PERMISSION_DENY = 0,
    TORPOR_PERMISSION_ALLOW = 1,
    TORPOR_PERMISSION_ASK = 2 /* Withheld, since nobody has answered. */
};
typedef struct torpor_question {
    bool asked;      /* People are asked now. */
    int64_t next_at; /* When people can be asked, in microseconds since 1970, if it is too soon; 0 otherwise. */
} torpor_question;
/* What applies to a permission that is declared for the app; -ENOENT for any other. */
int torpor_app_permission(torpor_app *app, const char *name);
/* The same, and has people asked if nobody has answered: once, and at most once an hour for each app. Does not wait for the
 * answer. question may be NULL. Without a supervisor nothing is withheld. */
int torpor_app_request_permission(torpor_app *app, const char *name, torpor_question *question);

/* Names count things that must be refreshed before people see the app again. The names gather while it is not in the
 * foreground, and refresh gets them when it comes there, or at once. Without a supervisor it does nothing. */
int torpor_app_set_needs_refresh(torpor_app *app, const char *const *names, size_t count);

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

/* What the app is set to: an object with a member for each setting, null where it has no value; durations in seconds, sizes
 * in bytes. Free it with torpor_json_free. NULL on failure: torpor_app_last_error. */
torpor_json *torpor_app_settings(torpor_app *app);
/* Sets one that is the app's own to set (writable) to a value in JSON, such as "8001" or "\"dark\""; NULL sets it back to its
 * default. The app is not told of that. Returns 1, or 0 where it was so already, when it is on the disk and in the file;
 * -EINVAL for what is no JSON. */
int torpor_app_set_setting(torpor_app *app, const char *name, const char *json);

/* ---- State ------------------------------------------------------------------------------------------------------- */

/* Keeps bytes for restore_state at the next launch after an eviction, a crash or a boot; returns when they are
 * durable. What is larger than 512 KiB goes through a file in TORPOR_STATE_DIRECTORY. */
int torpor_app_save_state(torpor_app *app, const void *bytes, size_t size);
/* The same with a file in TORPOR_STATE_DIRECTORY, by its name there, which is copied. */
int torpor_app_save_state_file(torpor_app *app, const char *name);
/* Forgets what was kept. */
int torpor_app_discard_state(torpor_app *app);
/* The same for a scene inside the app, by its name: its state is given to scene_will_connect. */
int torpor_app_save_scene_state(torpor_app *app, const char *scene, const void *bytes, size_t size);
int torpor_app_save_scene_state_file(torpor_app *app, const char *scene, const char *name);
int torpor_app_discard_scene_state(torpor_app *app, const char *scene);
/* Reads the archive that a restore_state or scene_will_connect message names: bytes to be freed with free, ended by a
 * NUL that *size does not count. NULL with errno; EINVAL where there is no archive. */
void *torpor_app_read_state(const torpor_message *message, size_t *size);

/* ---- Snapshots --------------------------------------------------------------------------------------------------- */

/* Keeps what the app shows, a picture (PNG, JPEG, GIF, WebP) or a text in UTF-8 of at most 4 MiB, while the app is in the
 * background or answers did_enter_background; 0 when it is durable. */
int torpor_app_save_snapshot(torpor_app *app, const void *bytes, size_t size);
/* The same with a file in TORPOR_STATE_DIRECTORY, by its name there, which is copied. */
int torpor_app_save_snapshot_file(torpor_app *app, const char *name);
/* Forgets the snapshot, and has none taken before the app enters the background again. */
int torpor_app_discard_snapshot(torpor_app *app);
/* The same for a scene inside the app, by its name, that is in the background or answers scene_did_enter_background. */
int torpor_app_save_scene_snapshot(torpor_app *app, const char *scene, const void *bytes, size_t size);
int torpor_app_save_scene_snapshot_file(torpor_app *app, const char *scene, const char *name);
int torpor_app_discard_scene_snapshot(torpor_app *app, const char *scene);

/* ---- Other ------------------------------------------------------------------------------------------------------- */

/* The sentence of the last error, "" without one, copied into text. */
void torpor_app_last_error(torpor_app *app, char *text, size_t size);
/* Sends a datagram of the sd_notify protocol, such as "STATUS=Reading the index." or "WATCHDOG=1"; 0 also where there
 * is nobody to hear it. */
int torpor_app_notify(const char *state);

#ifdef __cplusplus
}
#endif

#endif
