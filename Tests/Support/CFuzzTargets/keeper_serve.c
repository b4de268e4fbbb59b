// SPDX-License-Identifier: Apache-2.0

// How the keeper serves torpord's messages: `received` and serve_message() are static.
#include "../../../Sources/torpor-keeper/serve.c"

#include "keeper_stubs.h"

#include <stdlib.h>

static cfuzz_answered answered;
static void *answered_context;

static void set_up(void)
{
    if (table == NULL && !table_setup())
        abort();
    torpord_greeted = true;
}

void cfuzz_keeper_serve(const void *message, size_t size, unsigned descriptors, bool truncated, cfuzz_answered call,
                        void *context)
{
    set_up();
    answered = call;
    answered_context = context;
    if (size >= sizeof received.bytes || descriptors > TORPOR_KEEPER_DESCRIPTORS)
        return;
    memcpy(received.bytes, message, size);
    memcpy(received_fds, cfuzz_descriptors(), sizeof *received_fds * descriptors);
    received_count = descriptors;
    serve_message(size, truncated);
    close_received();
    answered = NULL;
}

static char *some_name;

static void note_name(struct hold_name *name);

#include "../../../Sources/torpor-keeper/hold.h"

static void note_name(struct hold_name *name)
{
    if (name->count > 0)
        some_name = name->text;
}

size_t cfuzz_keeper_held(void)
{
    size_t count = 0;
    for (uint32_t index = 0; index < hold_names_used; index++)
        count += hold_names[index].count;
    return count;
}

void cfuzz_keeper_reset(void)
{
    set_up();
    do {
        some_name = NULL;
        hold_each_name(note_name);
        if (some_name != NULL && hold_release(some_name) != 0)
            abort();
    } while (some_name != NULL);
    if (cfuzz_keeper_held() != 0)
        abort();
    table->orphan_next = 9;
    table->orphan_freed = 0;
}

void wire_answer(const void *message, size_t size, const int *fds, unsigned count)
{
    if (size > TORPOR_KEEPER_REPLY_LIMIT || count > TORPOR_KEEPER_DESCRIPTORS)
        abort();
    for (unsigned i = 0; i < count; i++)
        if (fds[i] < -1)
            abort();
    if (answered != NULL)
        answered(answered_context, message, size, count);
}

void wire_answer_number(uint32_t type, uint32_t id, uint32_t value)
{
    struct torpor_keeper_number message = {{type, id}, value};
    wire_answer(&message, sizeof message, NULL, 0);
}
