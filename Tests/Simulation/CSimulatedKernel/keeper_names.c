// SPDX-License-Identifier: Apache-2.0

#include "keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torpor_keeper_protocol.h"

// Descriptors that the keeper holds by a name for the next torpord.

enum { NAMES = 512, FEW = 64 };

static struct held {
    char name[TORPOR_KEEPER_NAME_BYTES];
    int fds[FEW];
    uint32_t count;
} names[NAMES];

static int names_end;  // those from here on are free

static struct held *find_name(const char *name)
{
    for (int i = 0; i < names_end; i++)
        if (names[i].count > 0 && strcmp(names[i].name, name) == 0)
            return &names[i];
    return NULL;
}

static void let_go(struct held *held)
{
    for (uint32_t i = 0; i < held->count; i++)
        close(held->fds[i]);
    held->count = 0;
    // Whoever was connected to what closes now hears of it.
    sim_world->runs++;
}

uint32_t sim_hold(const char *name, uint32_t flags, const int *fds, uint32_t *count)
{
    struct held *held = find_name(name);
    if (held != NULL && flags & TORPOR_HOLD_REPLACE)
        let_go(held);
    for (int i = 0; i < NAMES && held == NULL; i++)
        if (names[i].count == 0) {
            held = &names[i];
            if (i >= names_end)
                names_end = i + 1;
        }
    if (held == NULL || held->count + *count > FEW)
        return ENOSPC;
    snprintf(held->name, sizeof held->name, "%s", name);
    for (uint32_t i = 0; i < *count; i++)
        held->fds[held->count++] = fds[i];
    *count = 0;
    return 0;
}

uint32_t sim_release(const char *name)
{
    struct held *held = find_name(name);
    if (held == NULL)
        return ENOENT;
    let_go(held);
    return 0;
}

void sim_release_all(void)
{
    for (int i = 0; i < names_end; i++)
        if (names[i].count > 0)
            let_go(&names[i]);
    names_end = 0;
}

void sim_take(uint32_t id, const char *name, uint32_t offset)
{
    struct held *held = find_name(name);
    struct torpor_keeper_pair taken = {{TORPOR_KEEPER_TAKEN, id}, held == NULL ? ENOENT : 0, 0};
    if (held != NULL)
        taken.second = held->count;
    uint32_t count = held != NULL && offset < held->count ? held->count - offset : 0;
    sim_send_to_torpord(&taken, sizeof taken, held == NULL ? NULL : held->fds + offset, count);
}

// A name a message: torpord asks for the next until there is none.
void sim_take_all(uint32_t id, uint32_t index)
{
    struct {
        struct torpor_keeper_held head;
        char rest[2 + TORPOR_KEEPER_NAME_BYTES];
    } message = {.head = {{TORPOR_KEEPER_HELD, id}, 0, 0, 0}};
    while (index < (uint32_t)names_end && names[index].count == 0)
        index++;
    if (index >= (uint32_t)names_end) {
        sim_send_to_torpord(&message, sizeof message.head, NULL, 0);
        return;
    }
    uint16_t count = (uint16_t)names[index].count;
    memcpy(message.rest, &count, sizeof count);
    size_t length = strlen(names[index].name) + 1;
    memcpy(message.rest + sizeof count, names[index].name, length);
    message.head.count = 1;
    uint32_t next = index + 1;
    while (next < (uint32_t)names_end && names[next].count == 0)
        next++;
    message.head.next_name = next < (uint32_t)names_end ? next : 0;
    sim_send_to_torpord(&message, sizeof message.head + sizeof count + length, names[index].fds, count);
}

void sim_list_held(uint32_t id)
{
    struct {
        struct torpor_keeper_pair head;
        char rest[TORPOR_KEEPER_REPLY_LIMIT - sizeof(struct torpor_keeper_pair)];
    } message = {.head = {{TORPOR_KEEPER_NAMES, id}, 0, 0}};
    size_t used = 0;
    for (int i = 0; i < names_end; i++) {
        if (names[i].count == 0)
            continue;
        size_t length = strlen(names[i].name) + 1;
        if (used + length > sizeof message.rest)
            abort();
        memcpy(message.rest + used, names[i].name, length);
        used += length;
        message.head.second++;
    }
    sim_send_to_torpord(&message, sizeof message.head + used, NULL, 0);
}

int sim_keeper_held(char *text, size_t size)
{
    int count = 0;
    size_t used = 0;
    for (int i = 0; i < names_end; i++) {
        if (names[i].count == 0)
            continue;
        count += (int)names[i].count;
        int added = snprintf(text + used, size - used, "%s %u\n", names[i].name, names[i].count);
        if (added > 0 && used + (size_t)added < size)
            used += (size_t)added;
    }
    return count;
}
