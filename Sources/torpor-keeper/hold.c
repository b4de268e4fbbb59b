#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Names in a hash of static entries; the descriptors of a name form a list in the order in which they came.

struct name {
    char text[TORPOR_KEEPER_NAME_BYTES];
    uint32_t hash_next;  // index + 1, as all links here
    uint32_t first, last;
    uint32_t count;      // 0: the entry is free
};

struct held {
    int fd;
    uint32_t next;
};

static struct name names[TORPOR_KEEPER_NAME_COUNT];
static struct held helds[TORPOR_KEEPER_HELD_COUNT];
static uint32_t buckets[8192];
static uint32_t names_used, held_used;
static uint32_t names_free, held_free;  // lists of freed entries

static uint32_t *bucket(const char *name)
{
    uint32_t hash = 2166136261u;  // FNV-1a
    for (; *name != 0; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return &buckets[hash % (sizeof buckets / sizeof *buckets)];
}

static struct name *find(const char *text)
{
    for (uint32_t link = *bucket(text); link != 0; link = names[link - 1].hash_next)
        if (strcmp(names[link - 1].text, text) == 0)
            return &names[link - 1];
    return NULL;
}

static uint32_t room(void)
{
    uint32_t freed = 0;
    for (uint32_t link = held_free; link != 0 && freed < TORPOR_KEEPER_DESCRIPTORS; link = helds[link - 1].next)
        freed++;
    return freed + (TORPOR_KEEPER_HELD_COUNT - held_used);
}

static void close_list(uint32_t link)
{
    while (link != 0) {
        uint32_t next = helds[link - 1].next;
        close(helds[link - 1].fd);
        helds[link - 1].next = held_free;
        held_free = link;
        link = next;
    }
}

int hold_add(const char *text, const int *fds, unsigned count, bool replace)
{
    if (count == 0 || strlen(text) >= TORPOR_KEEPER_NAME_BYTES)
        return EINVAL;
    if (room() < count)
        return ENOSPC;
    struct name *name = find(text);
    uint32_t old = 0;
    if (name != NULL && replace) {
        old = name->first;
        name->first = name->last = name->count = 0;
    }
    if (name == NULL) {
        uint32_t link;
        if (names_free != 0) {
            link = names_free;
            names_free = names[link - 1].hash_next;
        } else if (names_used < TORPOR_KEEPER_NAME_COUNT) {
            link = ++names_used;
        } else {
            return ENOSPC;
        }
        name = &names[link - 1];
        memset(name, 0, sizeof *name);
        strcpy(name->text, text);  // its length was checked
        uint32_t *head = bucket(text);
        name->hash_next = *head;
        *head = link;
    }
    for (unsigned i = 0; i < count; i++) {
        uint32_t link = held_free;
        if (link != 0)
            held_free = helds[link - 1].next;
        else
            link = ++held_used;
        helds[link - 1] = (struct held){.fd = fds[i]};
        if (name->last != 0)
            helds[name->last - 1].next = link;
        else
            name->first = link;
        name->last = link;
        name->count++;
    }
    close_list(old);
    return 0;
}

int hold_release(const char *text)
{
    struct name *name = find(text);
    if (name == NULL)
        return ENOENT;
    close_list(name->first);
    uint32_t index = (uint32_t)(name - names) + 1;
    for (uint32_t *link = bucket(text); *link != 0; link = &names[*link - 1].hash_next)
        if (*link == index) {
            *link = name->hash_next;
            break;
        }
    name->count = 0;
    name->hash_next = names_free;
    names_free = index;
    return 0;
}

int hold_take(const char *text, uint32_t offset, int *fds, unsigned limit, uint32_t *total, unsigned *count)
{
    struct name *name = find(text);
    *count = 0;
    *total = 0;
    if (name == NULL)
        return ENOENT;
    *total = name->count;
    for (uint32_t link = name->first; link != 0 && *count < limit; link = helds[link - 1].next)
        if (offset > 0)
            offset--;
        else
            fds[(*count)++] = helds[link - 1].fd;
    return 0;
}

size_t hold_list(uint32_t *cursor, char *text, size_t size, uint32_t *count)
{
    size_t used = 0;
    *count = 0;
    uint32_t index = *cursor;
    for (; index < names_used; index++) {
        if (names[index].count == 0)
            continue;
        size_t length = strlen(names[index].text) + 1;
        if (length > size - used)
            break;
        memcpy(text + used, names[index].text, length);
        used += length;
        ++*count;
    }
    *cursor = index < names_used ? index : 0;
    return used;
}

/// As many as go into one message, from the cursor in `held` on, which is moved.
size_t hold_take_all(struct torpor_keeper_held *held, char *text, size_t size, int *fds, unsigned *fd_count)
{
    size_t used = 0;
    uint32_t index = held->next_name, offset = held->next_offset;
    *fd_count = 0;
    held->count = 0;
    for (; index < names_used; index++, offset = 0) {
        struct name *name = &names[index];
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
            link = helds[link - 1].next;
        for (unsigned i = 0; i < taken; i++, link = helds[link - 1].next)
            fds[(*fd_count)++] = helds[link - 1].fd;
        if (taken < left) {
            offset += taken;
            break;
        }
    }
    held->next_name = index < names_used ? index : 0;
    held->next_offset = index < names_used ? offset : 0;
    return used;
}

uint32_t hold_count_names(void)
{
    uint32_t count = 0;
    for (uint32_t index = 0; index < names_used; index++)
        count += names[index].count > 0;
    return count;
}

void hold_each_name(void (*body)(const char *name, uint32_t count))
{
    for (uint32_t index = 0; index < names_used; index++)
        if (names[index].count > 0)
            body(names[index].text, names[index].count);
}

void hold_each_descriptor(const char *text, void (*body)(int fd))
{
    struct name *only = text == NULL ? names : find(text);
    if (only == NULL)
        return;
    for (uint32_t index = (uint32_t)(only - names); index < names_used; index++) {
        for (uint32_t link = names[index].first; names[index].count > 0 && link != 0; link = helds[link - 1].next)
            body(helds[link - 1].fd);
        if (text != NULL)
            return;
    }
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

void hold_inherit(void)
{
    int count = hold_offered();
    const char *next = getenv("LISTEN_FDNAMES");
    for (int i = 0; i < count; i++) {
        char name[TORPOR_KEEPER_NAME_BYTES] = "unknown";
        if (next != NULL) {
            size_t length = strcspn(next, ":");
            if (length > 0 && length < sizeof name) {
                memcpy(name, next, length);
                name[length] = 0;
            }
            next = next[length] == ':' ? next + length + 1 : NULL;
        }
        int fd = 3 + i;
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            continue;
        int error = hold_add(name, &fd, 1, false);
        if (error != 0)
            keeper_log("cannot hold descriptor %d (%s): %s", fd, name, strerror(error));
    }
}
