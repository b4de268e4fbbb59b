// SPDX-License-Identifier: Apache-2.0

// Throws where nobody catches.

#include "torpor_policy.h"

#include <stdexcept>

static int the_policy;

static void *create(const torpor_policy_options *, char *, size_t) { return &the_policy; }

static int32_t decide(void *, const torpor_policy_view *, const torpor_policy_event *event, const torpor_policy_reply *)
{
    try {
        if (event->kind != TORPOR_EVENT_TIMER)
            throw std::runtime_error("caught");
    } catch (const std::exception &) {
        return TORPOR_DECIDED;
    }
    throw std::runtime_error("nobody catches this");
}

static const torpor_policy table = {
    sizeof table, TORPOR_POLICY_ABI, 1, 0, ~UINT64_C(0), 0, "throws", "1", "Throws.", nullptr, create, decide, nullptr,
};

extern "C" const torpor_policy *torpor_policy_entry(uint32_t) { return &table; }
