// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads the held descriptors, and takes over those that the service manager stored while the service was restarted.

int hold_take(const char *text, uint32_t offset, int *fds, unsigned limit, uint32_t *total, unsigned *count)
{
    struct hold_name *name = hold_find(text);
    *count = 0;
    *total = 0;
    if (name == NULL || name->count == 0)
        return ENOENT;
    *total = name->count;
    for (uint32_t link = name->first; link != 0 && *count < limit; link = hold_entries[link - 1].next)
        if (offset > 0)
            offset--;
        else
            fds[(*count)++] = hold_entries[link - 1].fd;
    return 0;
}

size_t hold_list(uint32_t *cursor, char *text, size_t size, uint32_t *count)
{
    size_t used = 0;
    *count = 0;
    uint32_t index = *cursor;
    for (; index < hold_names_used; index++) {
        if (hold_names[index].count == 0)
            continue;
        size_t length = strlen(hold_names[index].text) + 1;
        if (length > size - used)
            break;
        memcpy(text + used, hold_names[index].text, length);
        used += length;
        ++*count;
    }
    *cursor = index < hold_names_used ? index : 0;
    return used;
}

/// Takes as many descriptors as fit into one message, starting at the cursor in `held`, and advances the cursor.
size_t hold_take_all(struct torpor_keeper_held *held, char *text, size_t size, int *fds, unsigned *fd_count)
{
    size_t used = 0;
    uint32_t index = held->next_name, offset = held->next_offset;
    *fd_count = 0;
    held->count = 0;
    for (; index < hold_names_used; index++, offset = 0) {
        struct hold_name *name = &hold_names[index];
        uint32_t left = offset < name->count ? name->count - offset : 0;
        if (left == 0)
            continue;
        size_t length = strlen(name->text) + 1;
        unsigned room = TORPOR_KEEPER_DESCRIPTORS - *fd_count;
        uint16_t taken = (uint16_t)(left < room ? left : room);
        if (taken == 0 || size - used < length + sizeof taken)
            break;
        memcpy(text + used, &taken, sizeof taken);
        memcpy(text + used + sizeof taken, name->text, length);
        used += length + sizeof taken;
        held->count++;
        uint32_t link = name->first;
        for (uint32_t skip = offset; skip > 0; skip--)
            link = hold_entries[link - 1].next;
        for (unsigned i = 0; i < taken; i++, link = hold_entries[link - 1].next)
            fds[(*fd_count)++] = hold_entries[link - 1].fd;
        if (taken < left) {
            offset += taken;
            break;
        }
    }
    held->next_name = index < hold_names_used ? index : 0;
    held->next_offset = index < hold_names_used ? offset : 0;
    return used;
}

int hold_offered(void)
{
    const char *pid = getenv("LISTEN_PID");
    const char *fds = getenv("LISTEN_FDS");
    if (pid == NULL || fds == NULL || strtol(pid, NULL, 10) != (long)getpid())
        return 0;
    long count = strtol(fds, NULL, 10);
    return count < 0 ? 0 : count > 65536 ? 65536 : (int)count;
}

struct inherited {
    int fd;
    int32_t number;  // -1: not stored for the keeper, but a socket that the manager listens on
    char name[TORPOR_KEEPER_NAME_BYTES];
};

static int by_number(const void *one, const void *other)
{
    const struct inherited *a = one, *b = other;
    return a->number != b->number ? (a->number < b->number ? -1 : 1) : a->fd - b->fd;
}

// The name of a descriptor that the manager stored ends with its index: "name#0".
static void take_number(struct inherited *one)
{
    char *mark = strrchr(one->name, '#'), *end;
    one->number = -1;
    if (mark == NULL || mark == one->name || mark[1] < '0' || mark[1] > '9')
        return;
    unsigned long number = strtoul(mark + 1, &end, 10);
    if (*end != 0 || number >= TORPOR_KEEPER_HELD_COUNT)
        return;
    one->number = (int32_t)number;
    *mark = 0;
}

void hold_inherit(void)
{
    int count = hold_offered(), used = 0;
    const char *next = getenv("LISTEN_FDNAMES");
    struct inherited *all = count == 0 ? NULL : calloc((size_t)count, sizeof *all);
    if (count > 0 && all == NULL)
        keeper_log("cannot take over the service manager's descriptors: %s", strerror(errno));
    for (int i = 0; all != NULL && i < count; i++) {
        struct inherited *one = &all[used];
        memcpy(one->name, "unknown", sizeof "unknown");
        if (next != NULL) {
            size_t length = strcspn(next, ":");
            if (length > 0 && length < sizeof one->name) {
                memcpy(one->name, next, length);
                one->name[length] = 0;
            }
            next = next[length] == ':' ? next + length + 1 : NULL;
        }
        one->fd = 3 + i;
        take_number(one);
        used += fcntl(one->fd, F_SETFD, FD_CLOEXEC) >= 0;
    }
    if (used > 0)
        qsort(all, (size_t)used, sizeof *all, by_number);
    for (int i = 0; i < used; i++) {
        int error = hold_add(all[i].name, &all[i].fd, 1, false);
        if (error == 0)
            park_has(hold_find(all[i].name), (uint32_t)(all[i].number + 1));
        else
            keeper_log("cannot hold descriptor %d (%s): %s", all[i].fd, all[i].name, strerror(error));
    }
    free(all);
}
