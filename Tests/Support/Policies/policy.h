/* SPDX-License-Identifier: Apache-2.0 */

// What the policies of the tests have in common.

#define _GNU_SOURCE
#include "torpor_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((unused)) static int the_policy;

static inline void advise(const torpor_policy_reply *reply, uint32_t kind, uint32_t app, uint32_t value, int64_t time,
                          const char *reason)
{
    torpor_policy_advice advice = {sizeof advice, kind, app, value, time, reason};
    reply->advise(reply, &advice);
}

// A table around create and decide, and the entry point.
#define POLICY(name, create, decide) \
    static const torpor_policy the_table = {sizeof the_table, TORPOR_POLICY_ABI, 1,      0,      ~UINT64_C(0), 0, name, \
                                            "1.0",            "For tests.",      NULL,   create, decide,       NULL}; \
    const torpor_policy *torpor_policy_entry(uint32_t abi) \
    { \
        (void)abi; \
        return &the_table; \
    }
