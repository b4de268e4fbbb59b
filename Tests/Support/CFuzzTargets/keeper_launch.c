// SPDX-License-Identifier: Apache-2.0

// How the keeper reads a launch: read_plan() is static.
#include "../../../Sources/torpor-keeper/launch.c"

#include "keeper_stubs.h"

#include <stdlib.h>

int cfuzz_keeper_plan(const void *message, size_t size, unsigned descriptors, struct cfuzz_plan *plan)
{
    // Of just this size, so that a sanitizer sees every byte too far. The strings stay good until the next call.
    static char *copy;
    static struct keeper_plan read;
    free(copy);
    copy = malloc(size + 1);
    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, message, size);
    copy[size] = 0;  // as serve.c has it
    int error = read_plan(&read, copy, size, cfuzz_descriptors(), descriptors);
    if (error != 0)
        return error;
    *plan = (struct cfuzz_plan){
        .app = read.app,
        .executable = read.executable,
        .directory = read.directory,
        .input_file = read.input_file,
        .error_file = read.error_file,
        .arguments = read.arguments,
        .environment = read.environment,
        .filter_count = read.filter_count,
        .has_ruleset = read.ruleset >= 0,
    };
    return 0;
}
