/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_POLICY_H
#define TORPOR_POLICY_H

/*
 * Lifecycle policies for Torpor: which apps go to the background, are suspended, are evicted first and are restarted.
 *
 * A policy is a shared library with one entry point, torpor_policy_entry. The supervisor shows it a view of all apps
 * and of the machine, tells it what happened, and follows its advice as far as its own rules allow; the policy
 * changes nothing itself. Advice that is refused is counted, and `torpor policy list` and `torpor events` say why.
 *
 * A single thread calls a policy, never recursively. Arguments are valid until the call returns. A policy should answer
 * within microseconds: an answer that takes longer than the policy's deadline (50 ms by default) counts as a failure.
 *
 * Versions. TORPOR_POLICY_ABI grows when something is added; nothing is ever removed or changes its meaning. Every
 * struct begins with its size in bytes in the version of its creator. New fields are added at the end, so a field
 * beyond the size is missing: check with TORPOR_POLICY_HAS. Step through arrays by the element size that comes with
 * them, not by sizeof. Ignore unknown values of an enumeration.
 *
 * Times are microseconds of CLOCK_MONOTONIC unless noted otherwise; TORPOR_NEVER if there is none.
 *
 * History
 *   1  the first
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TORPOR_POLICY_ABI 1u

#define TORPOR_NEVER INT64_MIN
#define TORPOR_NO_APP UINT32_MAX
#define TORPOR_UNKNOWN UINT32_MAX

/* Whether a struct from the other side is long enough to have the field. */
#define TORPOR_POLICY_HAS(pointer, field) \
    ((pointer)->size >= offsetof(__typeof__(*(pointer)), field) + sizeof((pointer)->field))

enum torpor_policy_state {
    TORPOR_STATE_NOT_RUNNING = 0,
    TORPOR_STATE_INACTIVE = 1,
    TORPOR_STATE_ACTIVE = 2,
    TORPOR_STATE_BACKGROUND = 3,
    TORPOR_STATE_SUSPENDED = 4,
};
#define TORPOR_STATE_COUNT 5

enum torpor_policy_edge {
    TORPOR_EDGE_NONE = 0,
    TORPOR_EDGE_LAUNCHING = 1,
    TORPOR_EDGE_ACTIVATING = 2,
    TORPOR_EDGE_DEACTIVATING = 3,
    TORPOR_EDGE_ENTERING_BACKGROUND = 4,
    TORPOR_EDGE_ENTERING_FOREGROUND = 5,
    TORPOR_EDGE_SUSPENDING = 6,
    TORPOR_EDGE_RESUMING = 7,
    TORPOR_EDGE_TERMINATING = 8,
};

/* Why an app ended. 16, 18 and 19 are reserved. */
enum torpor_policy_reason {
    TORPOR_REASON_NONE = 0,
    TORPOR_REASON_EXIT_SUCCESS = 1,
    TORPOR_REASON_EXIT_FAILURE = 2,
    TORPOR_REASON_SIGNAL = 3,
    TORPOR_REASON_CORE_DUMP = 4,
    TORPOR_REASON_LAUNCH_DEADLINE = 5,
    TORPOR_REASON_BACKGROUND_DEADLINE = 6,
    TORPOR_REASON_WATCHDOG = 7,
    TORPOR_REASON_TASK_EXPIRED = 8,
    TORPOR_REASON_LOCK_WHILE_SUSPENDING = 9,
    TORPOR_REASON_OOM_KILL = 10,
    TORPOR_REASON_UNKNOWN = 11,
    TORPOR_REASON_DEPENDENCY_FAILED = 12,
    TORPOR_REASON_REPLACED = 13,
    TORPOR_REASON_MEMORY_LIMIT = 14,
    TORPOR_REASON_UNRESPONSIVE = 15,
    TORPOR_REASON_WAKE_STORM = 17,
    TORPOR_REASON_EVICTED = 20,
    TORPOR_REASON_STOPPED = 21,
    TORPOR_REASON_EXITS_ON_SUSPEND = 22,
    TORPOR_REASON_SHUTDOWN = 23,
    TORPOR_REASON_FORCE_QUIT = 24,
    TORPOR_REASON_LAUNCH_FAILED = 25,
    TORPOR_REASON_PERMISSION_CHANGED = 26,
    TORPOR_REASON_GPU_IN_BACKGROUND = 27,
    TORPOR_REASON_PROTECTED_DATA_OPEN = 28,
    TORPOR_REASON_NO_PURPOSE_STRING = 29,
};

/* Why an app is launched. */
enum torpor_policy_launch {
    TORPOR_LAUNCH_BY_USER = 1,
    TORPOR_LAUNCH_AT_BOOT = 2,
    TORPOR_LAUNCH_AS_RESTART = 3,
    TORPOR_LAUNCH_FOR_DEPENDENT = 4,
    TORPOR_LAUNCH_FOR_EVENT = 5,
    TORPOR_LAUNCH_BY_POLICY = 6,
};

/* ---- The view ---- */

/* Bits of torpor_policy_app.flags. */
#define TORPOR_APP_PRESENT (1u << 0)          /* this place has an app; otherwise ignore the other fields */
#define TORPOR_APP_FAILED (1u << 1)           /* restarted too often; the supervisor gave up until a user resets it */
#define TORPOR_APP_ONESHOT (1u << 2)          /* runs once and exits */
#define TORPOR_APP_EXITS_ON_SUSPEND (1u << 3) /* exits instead of entering the background */
#define TORPOR_APP_EVICT_NEVER (1u << 4)      /* evict = "never" */
#define TORPOR_APP_EVICT_KILL (1u << 5)       /* evicted without notice: it could prepare, or is configured so */
#define TORPOR_APP_REQUIRED (1u << 6)         /* a running app requires it: it is neither suspended nor terminated */
#define TORPOR_APP_BY_PERSON_ONLY (1u << 7)   /* a user stopped it: only a user starts it again */
#define TORPOR_APP_WATCHED (1u << 8)          /* it must send heartbeats */
#define TORPOR_APP_TRACED (1u << 9)           /* a debugger is attached */
#define TORPOR_APP_INTERRUPTED (1u << 10)     /* kept inactive by an interruption */
#define TORPOR_APP_NEVER_WOKEN (1u << 11)     /* no event wakes it: once suspended, it stays so until a user or policy
                                                 resumes it */
#define TORPOR_APP_SENT_AWAY (1u << 12)       /* a policy sent it away from the foreground; it has not returned, and no
                                                 user has requested a state since */
#define TORPOR_APP_WOKEN_UNTRACED (1u << 13)  /* it was last woken over a socket whose traffic cannot be measured: a Unix
                                                 or vsock connection, a datagram, another network namespace */

/* One app. Use torpor_policy_app_at to get it. */
typedef struct torpor_policy_app {
    uint32_t size;
    uint32_t flags;       /* TORPOR_APP_… */
    uint32_t name;        /* offset in the view's strings */
    uint32_t tags;        /* offset of tag_count consecutive strings, each with its NUL */
    uint32_t tag_count;
    uint32_t state;       /* enum torpor_policy_state */
    uint32_t edge;        /* enum torpor_policy_edge */
    uint32_t goal;        /* enum torpor_policy_state: the state that was last requested */
    uint32_t incarnation; /* number of the current or last run, from 1 */
    int32_t priority;     /* as configured; 0 by default; apps with a higher priority are terminated later */
    uint32_t last_reason; /* enum torpor_policy_reason: how the run before this one ended */
    uint32_t processes;   /* number of its processes */
    int64_t state_since[TORPOR_STATE_COUNT]; /* when it last entered each state */
    int64_t last_use;     /* when it was last in the foreground (now while it is), or a connection woke it */
    int64_t launched_at;  /* when this run began */
    int64_t grant_ends;   /* when its time in the background is used up */
    int64_t next_restart; /* when it will be restarted */
    uint32_t restarts_in_window; /* restarts that count towards the limit */
    uint32_t restart_limit;      /* one more restart, and the supervisor gives up */
    uint32_t tasks;       /* background tasks that it has begun */
    uint32_t holds;       /* number of other holds that keep it in the background */
    /* Measurements, updated from time to time: only those that a policy needs (torpor_policy.needs). */
    int64_t measured_at;  /* when the fields below were measured */
    uint64_t memory;      /* bytes in memory */
    uint64_t cpu_time;    /* microseconds of processor time of this run */
    uint32_t cpu_permille; /* of one processor, between the last two measurements; TORPOR_UNKNOWN before the second */
    uint32_t connections; /* open TCP connections, and those of clients to its Unix sockets; TORPOR_UNKNOWN
                               if unknown */
    int64_t last_traffic; /* when one of its connections last carried data, or a connection to its ports closed,
                             as far as the kernel reports it */
    int64_t last_heartbeat; /* when it last sent WATCHDOG=1 */
    uint32_t mail;      /* messages that are queued for it */
    uint32_t unhandled; /* messages to it that no app handled */
} torpor_policy_app;

#define TORPOR_POWER_UNKNOWN 0u
#define TORPOR_POWER_MAINS 1u
#define TORPOR_POWER_BATTERY 2u

#define TORPOR_PRESSURE_NONE 0u
#define TORPOR_PRESSURE_WARNING 1u
#define TORPOR_PRESSURE_CRITICAL 2u

/* The machine. */
typedef struct torpor_policy_system {
    uint32_t size;
    uint32_t processors;
    int64_t now;        /* the current time, on the clock of all times here */
    int64_t realtime;   /* the current time in microseconds since 1970 */
    int64_t started;    /* when the supervisor started */
    int64_t measured_at; /* when the fields below were measured */
    uint64_t memory_total;     /* bytes, like the next three fields; 0 if unknown */
    uint64_t memory_available;
    uint64_t swap_total;
    uint64_t swap_free;
    /* Pressure stall information: hundredths of a percent over the last 10 s, TORPOR_UNKNOWN if unavailable. */
    uint32_t memory_some;
    uint32_t memory_full;
    uint32_t cpu_some;
    uint32_t io_some;
    uint32_t io_full;
    uint32_t load_1;    /* load averages over 1, 5 and 15 minutes, in hundredths */
    uint32_t load_5;
    uint32_t load_15;
    uint32_t power;     /* TORPOR_POWER_… */
    uint32_t battery;   /* charge in percent, TORPOR_UNKNOWN without a battery */
    uint32_t pressure;  /* TORPOR_PRESSURE_…: how short memory is, in the supervisor's judgement */
    uint32_t reserved;
} torpor_policy_system;

/* All apps and the machine. Shared memory, not a copy: do not write to it. */
typedef struct torpor_policy_view {
    uint32_t size;
    uint32_t app_count;   /* number of places; those without TORPOR_APP_PRESENT are empty */
    uint32_t app_size;    /* bytes from one place to the next */
    uint32_t string_size; /* bytes of strings */
    const torpor_policy_system *system;
    const void *apps;     /* use torpor_policy_app_at */
    const char *strings;  /* use torpor_policy_name and torpor_policy_has_tag */
} torpor_policy_view;

/* The app at a place, NULL if the place is empty. */
static inline const torpor_policy_app *torpor_policy_app_at(const torpor_policy_view *view, uint32_t place)
{
    if (place >= view->app_count) return NULL;
    const torpor_policy_app *app =
        (const torpor_policy_app *)(const void *)((const char *)view->apps + (size_t)place * view->app_size);
    return app->flags & TORPOR_APP_PRESENT ? app : NULL;
}

/* The app's name. */
static inline const char *torpor_policy_name(const torpor_policy_view *view, const torpor_policy_app *app)
{
    return view->strings + app->name;
}

/* Whether the app has the tag: 1 or 0. */
static inline int torpor_policy_has_tag(
    const torpor_policy_view *view, const torpor_policy_app *app, const char *tag)
{
    const char *text = view->strings + app->tags;
    for (uint32_t i = 0; i < app->tag_count; i++, text += strlen(text) + 1) {
        if (strcmp(text, tag) == 0) return 1;
    }
    return 0;
}

/* ---- What a policy is asked ---- */

enum torpor_policy_event_kind {
    TORPOR_EVENT_STARTED = 0,   /* the policy was loaded: examine all apps and the machine */
    TORPOR_EVENT_APPS = 1,      /* the configuration changed: apps were added, removed or changed */
    TORPOR_EVENT_STATE = 2,     /* app changed from state `from` to state `to` */
    TORPOR_EVENT_GOAL = 3,      /* app's goal changed from `from` to `to`, but not by a policy */
    TORPOR_EVENT_TIME_USED = 4, /* app's time in the background is used up: it may be suspended */
    TORPOR_EVENT_LAUNCH = 5,    /* app is about to be launched because of `reason` (enum torpor_policy_launch) */
    TORPOR_EVENT_ENDED = 6,     /* app ended because of `reason` (enum torpor_policy_reason); it is restarted after
                                   `delay`; TORPOR_NEVER: it is not */
    TORPOR_EVENT_TIMER = 7,     /* the time of TORPOR_ADVISE_ASK_AGAIN has come */
    TORPOR_EVENT_PRESSURE = 8,  /* the pressure on memory went from `from` to `to` (TORPOR_PRESSURE_…) */
    TORPOR_EVENT_EVICTION = 9,  /* in which order should apps be evicted if memory is short? */
};
#define TORPOR_EVENT_BIT(kind) (UINT64_C(1) << (kind))

typedef struct torpor_policy_event {
    uint32_t size;
    uint32_t kind;   /* enum torpor_policy_event_kind */
    uint32_t app;    /* the app's place; TORPOR_NO_APP if the event concerns no app */
    uint32_t from;
    uint32_t to;
    uint32_t reason;
    int64_t at;      /* when it happened */
    int64_t delay;   /* microseconds */
} torpor_policy_event;

/* ---- What a policy advises ---- */

enum torpor_policy_advice_kind {
    TORPOR_ADVISE_GOAL = 1,      /* app should go to state `value` (not inactive) */
    TORPOR_ADVISE_GRANT = 2,     /* app may stay in the background for `time` microseconds from now on */
    TORPOR_ADVISE_ORDER = 3,     /* to TORPOR_EVENT_EVICTION: apps with lower `value` are evicted first */
    TORPOR_ADVISE_ADMIT = 4,     /* to TORPOR_EVENT_LAUNCH: app is launched now; the default without advice */
    TORPOR_ADVISE_DELAY = 5,     /* to TORPOR_EVENT_LAUNCH: ask again about app in `time` microseconds, more than 0;
                                    100 ms at least */
    TORPOR_ADVISE_REFUSE = 6,    /* to TORPOR_EVENT_LAUNCH: app is not launched */
    TORPOR_ADVISE_RESTART = 7,   /* to TORPOR_EVENT_ENDED: the restart that is due (`delay`) comes in `time`
                                    microseconds; refused if none is due, as with restart = "never" */
    TORPOR_ADVISE_GIVE_UP = 8,   /* to TORPOR_EVENT_ENDED: app is marked failed and not restarted */
    TORPOR_ADVISE_PROFILE = 9,   /* app gets the resource profile of state `value` */
    TORPOR_ADVISE_ASK_AGAIN = 10, /* TORPOR_EVENT_TIMER is due in `time` microseconds, or earlier if earlier advice
                                    says so; 100 ms at least */
};

typedef struct torpor_policy_advice {
    uint32_t size;
    uint32_t kind;      /* enum torpor_policy_advice_kind */
    uint32_t app;       /* the app's place; TORPOR_NO_APP if the advice concerns no app */
    uint32_t value;
    int64_t time;       /* microseconds */
    const char *reason; /* why, in words for people: UTF-8, one line, 200 bytes at most; copied. NULL: none */
} torpor_policy_advice;

/* Collects a policy's advice, piece by piece. */
typedef struct torpor_policy_reply {
    uint32_t size;
    uint32_t reserved;
    void *context;
    /* 0: accepted. -1: no room for more, which counts as a failure of the policy; stop. */
    int32_t (*advise)(const struct torpor_policy_reply *reply, const torpor_policy_advice *advice);
} torpor_policy_reply;

enum torpor_policy_verdict {
    TORPOR_CONTINUE = 0, /* the policies after this one are asked too, but their advice for the same app in the same
                            matter is ignored */
    TORPOR_DECIDED = 1,  /* no other policy is asked about this event */
};

/* ---- Options ---- */

enum torpor_policy_option_type {
    TORPOR_OPTION_STRING = 1,
    TORPOR_OPTION_INTEGER = 2,
    TORPOR_OPTION_NUMBER = 3,
    TORPOR_OPTION_BOOLEAN = 4,
    TORPOR_OPTION_DATE = 5,
};

/* One value of [policies.NAME] options. Tables and arrays are flattened: rules.0.when, rules.1.when. */
typedef struct torpor_policy_option {
    uint32_t size;
    uint32_t type;    /* enum torpor_policy_option_type */
    const char *key;
    const char *text; /* the value as text, whatever its type */
    int64_t integer;  /* an integer; a boolean as 1 or 0 */
    double number;    /* an integer or a number */
} torpor_policy_option;

typedef struct torpor_policy_options {
    uint32_t size;
    uint32_t count;
    uint32_t option_size; /* bytes from one option to the next */
    uint32_t reserved;
    const void *options;  /* use torpor_policy_option_at; in the order of the configuration */
} torpor_policy_options;

static inline const torpor_policy_option *torpor_policy_option_at(const torpor_policy_options *options, uint32_t index)
{
    if (index >= options->count) return NULL;
    return (const torpor_policy_option *)(const void *)(
        (const char *)options->options + (size_t)index * options->option_size);
}

/* The option with that key, NULL if it is not configured. */
static inline const torpor_policy_option *torpor_policy_option_named(
    const torpor_policy_options *options, const char *key)
{
    for (uint32_t i = 0; i < options->count; i++) {
        const torpor_policy_option *option = torpor_policy_option_at(options, i);
        if (strcmp(option->key, key) == 0) return option;
    }
    return NULL;
}

/* ---- The policy ---- */

/* The measurements that a policy needs: what no policy needs is not measured. */
#define TORPOR_NEEDS_MEMORY (UINT64_C(1) << 0)      /* memory */
#define TORPOR_NEEDS_CPU (UINT64_C(1) << 1)         /* cpu_time, cpu_permille */
#define TORPOR_NEEDS_CONNECTIONS (UINT64_C(1) << 2) /* connections, last_traffic */
#define TORPOR_NEEDS_SYSTEM (UINT64_C(1) << 3)      /* the measured fields of torpor_policy_system */

typedef struct torpor_policy {
    uint32_t size;
    uint32_t abi;         /* TORPOR_POLICY_ABI of the header that it was compiled with */
    uint32_t minimum_abi; /* the earliest ABI that it can work with; 1 for any */
    uint32_t reserved;
    uint64_t events;      /* TORPOR_EVENT_BIT of the events that it is asked about */
    uint64_t needs;       /* TORPOR_NEEDS_… */
    const char *name;
    const char *version;
    const char *summary;  /* what it does, in a sentence */
    /* Describes the options: key, type, default and meaning of each, NULL at the end. May be NULL. */
    const char *const *options;
    /* Creates the policy. NULL: the options are wrong; `error` then has a sentence that says what to write. */
    void *(*create)(const torpor_policy_options *options, char *error, size_t error_size);
    /* Answers a question; returns an enum torpor_policy_verdict. */
    int32_t (*decide)(
        void *policy,
        const torpor_policy_view *view,
        const torpor_policy_event *event,
        const torpor_policy_reply *reply);
    void (*destroy)(void *policy);
} torpor_policy;

/* The entry point of the library. `abi` is the TORPOR_POLICY_ABI of the supervisor. The result must stay valid while
   the library is loaded. NULL: the library cannot work with this supervisor. */
#if defined(__GNUC__) && !defined(TORPOR_POLICY_NO_ENTRY)
__attribute__((visibility("default")))
#endif
const torpor_policy *torpor_policy_entry(uint32_t abi);

/* The name of the entry point, for dlsym. */
#define TORPOR_POLICY_ENTRY "torpor_policy_entry"

#ifdef __cplusplus
}
#endif

#endif
