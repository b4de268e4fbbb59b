// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "hold.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Names are in a hash table of static entries; the descriptors of a name form a list in order of arrival. The service
// manager, if there is one, gets a copy of each descriptor. So the entry of a released name is kept until the manager
// was notified.

KEEPER_TABLE struct hold_name hold_names[TORPOR_KEEPER_NAME_COUNT];
KEEPER_TABLE struct hold_entry hold_entries[TORPOR_KEEPER_HELD_COUNT];
uint32_t hold_names_used;

// Most names are short: pages of this table are touched only if there are many long names.
static KEEPER_TABLE union long_text {
    char text[TORPOR_KEEPER_NAME_BYTES];
    uint32_t next;  // the next free element
} long_texts[TORPOR_KEEPER_NAME_COUNT];
static uint32_t long_texts_used, long_texts_free;

static KEEPER_TABLE uint32_t buckets[8192];
static uint32_t entries_used;
static uint32_t names_free, entries_free;  // free lists

void hold_setup(void)
{
    keeper_keep_from_children(hold_names, sizeof hold_names);
    keeper_keep_from_children(hold_entries, sizeof hold_entries);
    keeper_keep_from_children(long_texts, sizeof long_texts);
    keeper_keep_from_children(buckets, sizeof buckets);
}

static int option(int fd, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

bool hold_is_foreign(const char *name)
{
    return strncmp(name, TORPOR_KEEPER_FOREIGN, sizeof TORPOR_KEEPER_FOREIGN - 1) == 0;
}

// In the queue of a Unix socket may be descriptors that linger. An app that has a copy of a TCP socket may have
// connected it and let it linger; while it listens, its close does not block.
bool hold_may_block(const char *name, int fd)
{
    return hold_is_foreign(name) || option(fd, SO_DOMAIN) == AF_UNIX
           || (option(fd, SO_TYPE) == SOCK_STREAM && option(fd, SO_ACCEPTCONN) == 0);
}

static uint32_t *bucket(const char *name)
{
    uint32_t hash = 2166136261u;  // FNV-1a
    for (; *name != 0; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return &buckets[hash % (sizeof buckets / sizeof *buckets)];
}

struct hold_name *hold_find(const char *text)
{
    for (uint32_t link = *bucket(text); link != 0; link = hold_names[link - 1].hash_next)
        if (strcmp(hold_names[link - 1].text, text) == 0)
            return &hold_names[link - 1];
    return NULL;
}

// There is one text per name, so the texts cannot run out.
static char *take_long_text(void)
{
    uint32_t link = long_texts_free;
    if (link != 0)
        long_texts_free = long_texts[link - 1].next;
    else
        link = ++long_texts_used;
    return long_texts[link - 1].text;
}

static void free_text(struct hold_name *name)
{
    if (name->text == name->brief)
        return;
    union long_text *text = (union long_text *)name->text;
    text->next = long_texts_free;
    long_texts_free = (uint32_t)(text - long_texts) + 1;
}

struct hold_name *hold_name_for(const char *text)
{
    struct hold_name *name = hold_find(text);
    uint32_t link = names_free;
    if (name != NULL)
        return name;
    if (link != 0)
        names_free = hold_names[link - 1].hash_next;
    else if (hold_names_used < TORPOR_KEEPER_NAME_COUNT)
        link = ++hold_names_used;
    else
        return NULL;
    name = &hold_names[link - 1];
    bool queued = name->queued;  // the entry may still be in the queue, which skips entries without work
    memset(name, 0, sizeof *name);
    size_t size = strlen(text) + 1;  // the caller has checked the length
    name->text = size <= sizeof name->brief ? name->brief : take_long_text();
    memcpy(name->text, text, size);
    name->used = true;
    name->queued = queued;
    uint32_t *head = bucket(text);
    name->hash_next = *head;
    *head = link;
    return name;
}

void hold_free_name(struct hold_name *name)
{
    uint32_t index = (uint32_t)(name - hold_names) + 1;
    for (uint32_t *link = bucket(name->text); *link != 0; link = &hold_names[*link - 1].hash_next)
        if (*link == index) {
            *link = name->hash_next;
            break;
        }
    free_text(name);
    name->text = name->brief;
    *name->text = 0;
    name->used = false;
    name->hash_next = names_free;
    names_free = index;
}

static uint32_t room(void)
{
    uint32_t freed = 0;
    for (uint32_t link = entries_free; link != 0 && freed < TORPOR_KEEPER_DESCRIPTORS;
         link = hold_entries[link - 1].next)
        freed++;
    return freed + (TORPOR_KEEPER_HELD_COUNT - entries_used);
}

// Releases the descriptors of a name. The service manager will be notified to remove its copies.
static void empty(struct hold_name *name)
{
    for (uint32_t link = name->first; link != 0;) {
        struct hold_entry *entry = &hold_entries[link - 1];
        uint32_t next = entry->next;
        if (hold_may_block(name->text, entry->fd))
            closer_take(entry->fd, closer_owner(name->text));
        else
            close(entry->fd);
        entry->next = entries_free;
        entries_free = link;
        link = next;
    }
    name->first = name->last = name->count = name->unparked = 0;
    if (name->remove < name->parked)
        name->remove = name->parked;
    name->parked = 0;
}

int hold_add(const char *text, const int *fds, unsigned count, bool replace)
{
    if (count == 0 || strlen(text) >= TORPOR_KEEPER_NAME_BYTES)
        return EINVAL;
    if (hold_is_foreign(text) && closer_is_stuck(closer_owner(text)))
        return EBUSY;
    if (room() < count)
        return ENOSPC;
    struct hold_name *name = hold_name_for(text);
    if (name == NULL)
        return ENOSPC;
    if (replace)
        empty(name);
    for (unsigned i = 0; i < count; i++) {
        uint32_t link = entries_free;
        if (link != 0)
            entries_free = hold_entries[link - 1].next;
        else
            link = ++entries_used;
        hold_entries[link - 1] = (struct hold_entry){.fd = fds[i]};
        if (name->last != 0)
            hold_entries[name->last - 1].next = link;
        else
            name->first = link;
        name->last = link;
        name->count++;
        if (name->unparked == 0)
            name->unparked = link;
    }
    park(name);
    return 0;
}

int hold_release(const char *text)
{
    struct hold_name *name = hold_find(text);
    if (name == NULL || name->count == 0)
        return ENOENT;
    empty(name);
    park(name);
    return 0;
}

void hold_each_name(void (*body)(struct hold_name *name))
{
    for (uint32_t index = 0; index < hold_names_used; index++)
        if (hold_names[index].used)
            body(&hold_names[index]);
}
