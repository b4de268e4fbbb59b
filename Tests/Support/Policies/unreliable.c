// SPDX-License-Identifier: Apache-2.0

// Does what a check of policies has to find, as its option `does` says; and `tick`, which a simulation has to bear.

#include "policy.h"

#include <time.h>

static char fault[64];
static int64_t calls;
static char *volatile lost;

static const char *const described[] = {
    "does", "word", "\"nothing\"", "What it does: nothing, leak, clock, nonsense, mute, fragile, slow, lame or tick.", NULL,
};

static void *create(const torpor_policy_options *options, char *error, size_t size)
{
    snprintf(fault, sizeof fault, "nothing");
    for (uint32_t i = 0; i < options->count; i++) {
        const torpor_policy_option *option = torpor_policy_option_at(options, i);
        if (strcmp(option->key, "does") != 0) {
            snprintf(error, size, "%s is no option: there is does", option->key);
            return NULL;
        }
        snprintf(fault, sizeof fault, "%s", option->text);
    }
    return &the_policy;
}

static int does(const char *what) { return strcmp(fault, what) == 0; }

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Six pieces of advice that nobody can follow, and one with a reason that is longer than there is room for.
static void talk_nonsense(const torpor_policy_view *view, const torpor_policy_reply *reply)
{
    char line[300];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    advise(reply, 99, 0, 0, 0, "there is no such advice");
    advise(reply, TORPOR_ADVISE_GOAL, view->app_count + 7, TORPOR_STATE_ACTIVE, 0, "there is no such app");
    advise(reply, TORPOR_ADVISE_GOAL, 0, 17, 0, "there is no such state");
    advise(reply, TORPOR_ADVISE_GOAL, 0, TORPOR_STATE_INACTIVE, 0, "it cannot stay there");
    advise(reply, TORPOR_ADVISE_GRANT, 0, 0, -1, "time does not run backwards");
    advise(reply, TORPOR_ADVISE_REFUSE, 0, 0, 0, "nobody asked");
    advise(reply, TORPOR_ADVISE_GOAL, 0, TORPOR_STATE_ACTIVE, 0, line);
}

static void tick(const torpor_policy_event *event, const torpor_policy_reply *reply)
{
    char reason[64];
    if (event->kind == TORPOR_EVENT_STARTED) {
        advise(reply, TORPOR_ADVISE_ASK_AGAIN, TORPOR_NO_APP, 0, 1000000, NULL);
    } else if (event->kind == TORPOR_EVENT_TIMER) {
        snprintf(reason, sizeof reason, "tick %lld", (long long)++calls);
        uint32_t state = calls % 2 ? TORPOR_STATE_SUSPENDED : TORPOR_STATE_BACKGROUND;
        advise(reply, TORPOR_ADVISE_GOAL, 0, state, 0, reason);
        advise(reply, TORPOR_ADVISE_ASK_AGAIN, TORPOR_NO_APP, 0, 1500000, NULL);
    }
}

static int32_t decide(void *policy, const torpor_policy_view *view, const torpor_policy_event *event,
                      const torpor_policy_reply *reply)
{
    (void)policy;
    if (does("leak")) {
        lost = malloc(1000);
        if (lost != NULL)
            memset(lost, 1, 1000);
    } else if (does("clock") && torpor_policy_app_at(view, 0) != NULL && nanoseconds() % 2 != 0) {
        advise(reply, TORPOR_ADVISE_GOAL, 0, TORPOR_STATE_ACTIVE, 0, "the time is odd");
    } else if (does("nonsense")) {
        talk_nonsense(view, reply);
    } else if (does("mute") && torpor_policy_app_at(view, 0) != NULL) {
        advise(reply, TORPOR_ADVISE_GOAL, 0, TORPOR_STATE_BACKGROUND, 0, NULL);
    } else if (does("fragile") && event->kind == TORPOR_EVENT_STATE) {
        // The app can be gone by the time of the question.
        const torpor_policy_app *app = torpor_policy_app_at(view, event->app);
        if (app->state == TORPOR_STATE_COUNT)
            abort();
    } else if (does("slow") && view->app_count >= 1000) {
        for (int64_t end = nanoseconds() + 3000000; nanoseconds() < end;)
            continue;
    } else if (does("lame")) {
        for (int64_t end = nanoseconds() + 4000000; nanoseconds() < end;)
            continue;
    } else if (does("tick")) {
        tick(event, reply);
    }
    return TORPOR_CONTINUE;
}

static const torpor_policy table = {
    .size = sizeof table,
    .abi = TORPOR_POLICY_ABI,
    .minimum_abi = 1,
    .events = TORPOR_EVENT_BIT(TORPOR_EVENT_STARTED) | TORPOR_EVENT_BIT(TORPOR_EVENT_STATE)
              | TORPOR_EVENT_BIT(TORPOR_EVENT_GOAL) | TORPOR_EVENT_BIT(TORPOR_EVENT_TIMER),
    .name = "unreliable",
    .version = "1.0",
    .summary = "Does what a check has to find.",
    .options = described,
    .create = create,
    .decide = decide,
};

const torpor_policy *torpor_policy_entry(uint32_t abi) { return abi >= 1 ? &table : NULL; }
