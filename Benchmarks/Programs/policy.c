// SPDX-License-Identifier: Apache-2.0

// A policy that does almost nothing, to measure everything around it. It is consulted when it is loaded and about
// every state that an app enters. The option `says` is its answer: "nothing", or "again", one piece of advice with a
// reason.
#include "torpor_policy.h"

#include <stdlib.h>

struct policy {
    int says_something;
};

static const char *const options[] = {"says", "string", "nothing", "nothing or again", NULL};

static void *create(const torpor_policy_options *options, char *error, size_t error_size)
{
    (void)error;
    (void)error_size;
    struct policy *policy = calloc(1, sizeof *policy);
    const torpor_policy_option *says = torpor_policy_option_named(options, "says");
    if (policy != NULL && says != NULL)
        policy->says_something = strcmp(says->text, "again") == 0;
    return policy;
}

static int32_t decide(
    void *state, const torpor_policy_view *view, const torpor_policy_event *event, const torpor_policy_reply *reply)
{
    struct policy *policy = state;
    const torpor_policy_app *app = torpor_policy_app_at(view, event->app);
    if (app == NULL || !policy->says_something)
        return TORPOR_CONTINUE;
    // Advise what has been requested already, so that no app changes state.
    torpor_policy_advice advice = {
        .size = sizeof advice,
        .kind = TORPOR_ADVISE_GOAL,
        .app = event->app,
        .value = app->goal,
        .reason = "it stays where it is",
    };
    reply->advise(reply, &advice);
    return TORPOR_CONTINUE;
}

static const torpor_policy policy = {
    .size = sizeof policy,
    .abi = TORPOR_POLICY_ABI,
    .minimum_abi = 1,
    .events = TORPOR_EVENT_BIT(TORPOR_EVENT_STARTED) | TORPOR_EVENT_BIT(TORPOR_EVENT_STATE),
    .name = "bench",
    .version = "1",
    .summary = "does next to nothing",
    .options = options,
    .create = create,
    .decide = decide,
    .destroy = free,
};

const torpor_policy *torpor_policy_entry(uint32_t abi)
{
    (void)abi;
    return &policy;
}
