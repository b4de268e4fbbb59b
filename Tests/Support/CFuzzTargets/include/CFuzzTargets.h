/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CFUZZTARGETS_H
#define CFUZZTARGETS_H

// The parsers of torpor-keeper and torpor-policy-host without the programs around them, and the JSON reader of the C
// library. Each file here includes the sources of one of them; what those call beyond is a stub.

#include "../../../../Clients/c/torpor_app.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Called with each answer of the keeper.
typedef void (*cfuzz_answered)(void *context, const void *message, size_t size, unsigned descriptors);

// Has the keeper serve one message of a torpord that it knows. cfuzz_keeper_reset ends that torpord, and lets go of what
// it had the keeper hold.
void cfuzz_keeper_serve(const void *message, size_t size, unsigned descriptors, bool truncated, cfuzz_answered answered,
                        void *context);
void cfuzz_keeper_reset(void);
// How many descriptors the keeper holds.
size_t cfuzz_keeper_held(void);

// A launch as the keeper reads it. Strings are good until the next call.
struct cfuzz_plan {
    const char *app;
    const char *executable;
    const char *directory;
    const char *input_file;
    const char *error_file;
    char **arguments;    // ended by NULL
    char **environment;  // likewise
    uint32_t filter_count;
    bool has_ruleset;
};
// 0, or the errno of what is wrong with it.
int cfuzz_keeper_plan(const void *message, size_t size, unsigned descriptors, struct cfuzz_plan *plan);

// What a policy's process is to load. Strings are good until the next call.
struct cfuzz_load {
    const char *path;
    uint32_t option_count;
    uint64_t address_space;
    uint64_t view_size;
    uint32_t advice_limit;
};
bool cfuzz_policy_load(const void *message, size_t size, struct cfuzz_load *load);
bool cfuzz_policy_option(uint32_t index, const char **key, const char **text, uint32_t *type, int64_t *integer);

// Looks at a library as the process does before it opens it: false where it is refused. `runpath` has room for that many
// bytes, and is empty where there is none.
bool cfuzz_policy_library(int descriptor, char *runpath, size_t size);

#endif
