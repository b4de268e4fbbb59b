// SPDX-License-Identifier: Apache-2.0

// Does harm when its library is opened: -DHARM=1 crashes, 2 exits with status 0, 3 never comes back, 4 writes garbage.

#include "policy.h"

#include <unistd.h>

__attribute__((constructor)) static void begin(void)
{
#if HARM == 1
    *(volatile int *)16 = 1;
#elif HARM == 2
    _exit(0);
#elif HARM == 3
    for (volatile unsigned long n = 0;; n++)
        continue;
#else
    if (write(3, "garbage of some length", 22) < 0)
        abort();
#endif
}

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
    (void)event;
    (void)reply;
    return TORPOR_CONTINUE;
}

POLICY("constructor", create, decide)
