// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The service manager gets a copy of all held descriptors (FDSTORE=1 of sd_notify(3)), so that they survive a restart
// of the service. The manager keeps no order within a name, so it gets each descriptor under a name of its own:
// "name#0", "name#1". Messages are derived from the held descriptors: the queue contains each name at most once and
// cannot overflow. If the manager would refuse a name, it gets no copies of its descriptors.

enum { MESSAGES_A_TURN = 256, LIMIT_MARGIN = 32 };
// Each message costs the manager time, and an app may store and remove descriptors without end. So the rate of
// messages is limited, and names take turns.
enum { MESSAGES_AT_ONCE = 4096, MESSAGES_A_SECOND = 500 };
enum { LAST_PATIENCE = 2000, LAST_PAUSE = 2 };  // milliseconds

static KEEPER_TABLE uint32_t queue[TORPOR_KEEPER_NAME_COUNT];
static uint32_t queue_first, queue_count;
static uint32_t queue_over;  // how many queue entries were completed so far
static uint32_t total;       // how many descriptors the manager has
static uint32_t limit = UINT32_MAX;  // FileDescriptorStoreMax=, if known
static bool said_limit;

void park_setup(void)
{
    keeper_keep_from_children(queue, sizeof queue);
    // systemd 254 and later pass the limit of their descriptor store; with older ones, it is unknown.
    const char *text = getenv("FDSTORE");
    if (text != NULL && *text != 0)
        limit = (uint32_t)strtoul(text, NULL, 10);
}

// Whether systemd accepts the name (as its fdname_is_valid()) even with a number appended.
static bool is_valid(const char *name)
{
    size_t length = strlen(name);
    if (length + sizeof "#131072" > 256)
        return false;
    for (; *name != 0; name++)
        if (*name < ' ' || *name >= 127 || *name == ':')
            return false;
    return true;
}

void park(struct hold_name *name)
{
    if (!manager_present || !is_valid(name->text)) {
        name->unparked = name->remove = 0;
        if (name->count == 0)
            hold_free_name(name);
        return;
    }
    // If the descriptors were released before the manager got them, there is nothing to send.
    if (name->count == 0 && name->remove == 0) {
        hold_free_name(name);
        return;
    }
    if (name->queued)
        return;
    name->queued = true;
    queue[(queue_first + queue_count++) % TORPOR_KEEPER_NAME_COUNT] = (uint32_t)(name - hold_names);
}

void park_has(struct hold_name *name, uint32_t number)
{
    name->unparked = 0;
    if (name->parked < number)
        name->parked = number;
    total += number > 0;
}

uint32_t park_offset(const struct hold_name *name)
{
    uint32_t offset = 0;
    for (uint32_t link = name->first; link != 0 && link != name->unparked; link = hold_entries[link - 1].next)
        offset++;
    return offset;
}

void park_restore(struct hold_name *name, const struct torpor_keeper_resume_name *from)
{
    uint32_t link = name->first;
    for (uint32_t skip = from->parked_count; skip > 0 && link != 0; skip--)
        link = hold_entries[link - 1].next;
    name->unparked = link;
    name->parked = from->parked_number;
    name->remove = from->remove;
    total += from->parked_number > from->remove ? from->parked_number : from->remove;
    park(name);
}

static bool send_remove(const struct hold_name *name, uint32_t number)
{
    char text[TORPOR_KEEPER_NAME_BYTES + 64];
    int size = snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s#%u", name->text, number);
    return manager_send(text, (size_t)size, -1);
}

static bool send_store(const struct hold_name *name, uint32_t number, int fd)
{
    char text[TORPOR_KEEPER_NAME_BYTES + 64];
    int size = snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s#%u\nFDPOLL=0", name->text, number);
    return manager_send(text, (size_t)size, fd);
}

static bool is_within_limit(void)
{
    // When the service starts, systemd passes stored descriptors within its soft limit and renumbers them, which
    // needs up to twice as many numbers (shift_fds()). If there are more, every start fails (202/FDS). The margin is
    // for sockets that systemd listens on.
    uint64_t room = keeper_nofile_soft / 2 > LIMIT_MARGIN ? keeper_nofile_soft / 2 - LIMIT_MARGIN : 0;
    if (total < limit && total < room)
        return true;
    if (!said_limit)
        keeper_log("the service manager stores %u descriptors at most: the others will not outlive the service; "
                   "raise FileDescriptorStoreMax= and LimitNOFILE=", total);
    said_limit = true;
    return false;
}

// Notifies the manager of a name's changes. Returns false if the manager has no room now, or the quota of this turn
// is used up.
static bool tell(struct hold_name *name, unsigned *messages)
{
    for (; name->remove > 0; name->remove--) {
        if (*messages == 0 || !send_remove(name, name->remove - 1))
            return false;
        --*messages;
        total -= total > 0;
    }
    while (name->unparked != 0) {
        struct hold_entry *entry = &hold_entries[name->unparked - 1];
        if (is_within_limit()) {
            if (*messages == 0 || !send_store(name, name->parked, entry->fd))
                return false;
            --*messages;
            name->parked++;
            total++;
        }
        name->unparked = entry->next;
    }
    if (name->used && name->count == 0)
        hold_free_name(name);
    return true;
}

static unsigned allowed = MESSAGES_AT_ONCE;
static uint64_t allowed_at;
static bool is_leaving;

static unsigned allowance(void)
{
    uint64_t now = keeper_now_milliseconds(), more = (now - allowed_at) * MESSAGES_A_SECOND / 1000;
    if (more > 0) {
        allowed = more > MESSAGES_AT_ONCE - allowed ? MESSAGES_AT_ONCE : allowed + (unsigned)more;
        allowed_at = now;
    }
    return is_leaving || allowed > MESSAGES_A_TURN ? MESSAGES_A_TURN : allowed;
}

bool park_flush(void)
{
    if (queue_count == 0)
        return true;
    unsigned messages = allowance(), before = messages;
    while (queue_count > 0) {
        struct hold_name *name = &hold_names[queue[queue_first]];
        bool is_told = tell(name, &messages);
        allowed -= before - messages < allowed ? before - messages : allowed;
        before = messages;
        if (!is_told)
            return false;
        name->queued = false;
        queue_first = (queue_first + 1) % TORPOR_KEEPER_NAME_COUNT;
        queue_count--;
        queue_over++;
    }
    return true;
}

uint32_t park_ticket(void)
{
    return queue_over + queue_count;
}

bool park_has_told(uint32_t ticket)
{
    return (int32_t)(queue_over - ticket) >= 0;
}

static void remove_all(struct hold_name *name)
{
    if (name->remove < name->parked)
        name->remove = name->parked;
    name->parked = 0;
    name->unparked = 0;
    if (name->remove > 0)
        park(name);
}

// Whether torpord served the socket. Clients may have left descriptors in it, or in connections that wait there.
static bool is_served(const char *name)
{
    return strcmp(name, "control") == 0 || strncmp(name, "app/", 4) == 0;
}

// Leaves descriptors whose last close may block to a closer: to close them must not delay the keeper's exit, and the
// manager must not close them last. Without a manager, the sockets of `sockets` are closed by the exit, which does not
// let them linger, so that their addresses are free at once.
static void let_go(struct hold_name *name)
{
    for (uint32_t link = name->first; link != 0; link = hold_entries[link - 1].next) {
        int fd = hold_entries[link - 1].fd;
        if (hold_is_foreign(name->text) || ((manager_present || is_served(name->text)) && hold_may_block(name->text, fd)))
            closer_take(fd, closer_owner(name->text));
    }
}

void park_leave(bool keep)
{
    is_leaving = true;
    if (!keep)
        hold_each_name(remove_all);
    hold_each_name(let_go);
    uint64_t end = keeper_now_milliseconds() + LAST_PATIENCE;
    while (!manager_flush() && keeper_now_milliseconds() < end) {
        struct timespec pause = {0, LAST_PAUSE * 1000000};
        nanosleep(&pause, NULL);
    }
    closer_leave(true);
}
