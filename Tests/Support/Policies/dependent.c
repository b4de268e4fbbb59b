// SPDX-License-Identifier: Apache-2.0

// Needs another library, which lies in a folder that it names.

#include "policy.h"

extern const char *dependency_says(void);

static void *create(const torpor_policy_options *options, char *error, size_t size)
{
    (void)options;
    (void)error;
    (void)size;
    return &the_policy;
}

static int32_t decide(void *policy, const torpor_policy_view *view, const torpor_policy_event *event,
                      const torpor_policy_reply *reply)
{
    (void)policy;
    (void)view;
    advise(reply, TORPOR_ADVISE_GOAL, event->app, 0, 0, dependency_says());
    return TORPOR_CONTINUE;
}

POLICY("dependent", create, decide)
