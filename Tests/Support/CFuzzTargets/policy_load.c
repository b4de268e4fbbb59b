// SPDX-License-Identifier: Apache-2.0

// What a policy's process reads before anything of the policy has run. Where the process would end, the call does.
#include "include/CFuzzTargets.h"

#include "../../../Sources/torpor-policy-host/load.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "policy_end.h"

jmp_buf cfuzz_policy_ended;

void host_refuse(const char *format, ...)
{
    char sentence[TORPOR_POLICY_SENTENCE_LIMIT + 1];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    longjmp(cfuzz_policy_ended, 1);
}

void host_give_up(const char *what)
{
    (void)what;
    longjmp(cfuzz_policy_ended, 1);
}

static struct host_load load;

bool cfuzz_policy_load(const void *message, size_t size, struct cfuzz_load *found)
{
    host_load_free(&load);
    memset(&load, 0, sizeof load);
    // Of just this size, so that a sanitizer sees every byte too far.
    char *volatile copy = malloc(size == 0 ? 1 : size);
    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, message, size);
    if (setjmp(cfuzz_policy_ended) != 0) {
        free(copy);
        return false;
    }
    host_load_read(copy, size, &load);
    free(copy);
    *found = (struct cfuzz_load){
        .path = load.path,
        .option_count = load.option_count,
        .address_space = load.address_space,
        .view_size = load.view_size,
        .advice_limit = load.advice_limit,
    };
    return true;
}

bool cfuzz_policy_option(uint32_t index, const char **key, const char **text, uint32_t *type, int64_t *integer)
{
    if (index >= load.option_count)
        return false;
    *key = load.options[index].key;
    *text = load.options[index].text;
    *type = load.options[index].type;
    *integer = load.options[index].integer;
    return true;
}
