// SPDX-License-Identifier: Apache-2.0

// Tables as other versions of the interface have them, and such as no version has: -DTABLE=n.

#include "policy.h"

static void *create(const torpor_policy_options *options, char *error, size_t size)
{
    (void)options;
    (void)error;
    (void)size;
    return &the_policy;
}

#if TABLE == 10
extern int there_is_no_such_function(void);
#endif

__attribute__((unused)) static int32_t decide(void *policy, const torpor_policy_view *view, const torpor_policy_event *event,
                      const torpor_policy_reply *reply)
{
    (void)policy;
    (void)view;
#if TABLE == 10
    return there_is_no_such_function();
#endif
#if TABLE == 1
    // As if reasons were not yet there when it was built.
    torpor_policy_advice advice = {offsetof(torpor_policy_advice, reason), TORPOR_ADVISE_GOAL, event->app, 3, 4,
                                   (const char *)16};
#else
    struct {
        torpor_policy_advice known;
        uint64_t later[4];
    } longer = {{sizeof longer, TORPOR_ADVISE_GOAL, event->app, 3, 4, "with a reason"}, {1, 2, 3, 4}};
    torpor_policy_advice advice = longer.known;
#endif
    reply->advise(reply, &advice);
    return TORPOR_DECIDED;
}

#define BEGINNING(bytes, built_for, minimum) \
    .size = bytes, .abi = built_for, .minimum_abi = minimum, .events = ~UINT64_C(0), .name = "table", .version = "1"

#if TABLE == 2
// A later version: more fields, of which nobody here knows.
static const struct {
    torpor_policy known;
    void *later[8];
} table = {{BEGINNING(sizeof table, TORPOR_POLICY_ABI + 7, 1), .create = create, .decide = decide},
           {(void *)16, (void *)16, (void *)16, (void *)16, (void *)16, (void *)16, (void *)16, (void *)16}};
#else
static const torpor_policy table = {
#if TABLE == 1
    // An earlier version: what is last is not there, whatever lies in its place.
    BEGINNING(offsetof(torpor_policy, destroy), TORPOR_POLICY_ABI, 1), .create = create, .decide = decide,
    .destroy = (void (*)(void *))16,
#elif TABLE == 3
    BEGINNING(sizeof table, TORPOR_POLICY_ABI + 1, TORPOR_POLICY_ABI + 1), .create = create, .decide = decide,
#elif TABLE == 4
    BEGINNING(8, TORPOR_POLICY_ABI, 1), .create = create, .decide = decide,
#elif TABLE == 5
    BEGINNING(sizeof table, 0, 0), .create = create, .decide = decide,
#elif TABLE == 6
    BEGINNING(sizeof table, TORPOR_POLICY_ABI, 1), .create = create,
#elif TABLE == 7
    .size = sizeof table, .abi = 1, .create = create, .decide = decide,
#elif TABLE == 8
    BEGINNING(offsetof(torpor_policy, decide), TORPOR_POLICY_ABI, 1), .create = create, .decide = decide,
#else
    BEGINNING(sizeof table, TORPOR_POLICY_ABI, 1), .create = create, .decide = decide,
#endif
};
#endif

#if TABLE == 9
const torpor_policy *torpor_policy_entry(uint32_t abi)
{
    (void)abi;
    return NULL;
}
#elif TABLE != 11
const torpor_policy *torpor_policy_entry(uint32_t abi) { return abi >= 1 ? (const torpor_policy *)&table : NULL; }
#else
const void *something_else(void) { return &table; }
#endif
