// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

// The slots are in a memfd: if the keeper is lost, the torpord that notices can still read how apps have ended. The
// memfd is sealed against writes by other processes. Only pages that were touched take memory.

struct torpor_keeper_table *table;
struct torpor_keeper_slot *table_slots;
struct torpor_keeper_orphan *table_orphans;
struct keeper_process *table_processes;
uint32_t table_used;
uint32_t table_living;
int table_memfd = -1;

static KEEPER_TABLE struct keeper_process processes[TORPOR_KEEPER_SLOTS];
static KEEPER_TABLE uint32_t free_slots[TORPOR_KEEPER_SLOTS];
static uint32_t free_count;
static KEEPER_TABLE uint32_t buckets[TORPOR_KEEPER_SLOTS];  // index + 1

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

bool table_setup(void)
{
    size_t slot_offset = 4096;
    size_t orphan_offset = slot_offset + sizeof *table_slots * TORPOR_KEEPER_SLOTS;
    size_t size = orphan_offset + sizeof *table_orphans * TORPOR_KEEPER_ORPHANS;
    table_memfd = memfd_create("torpor-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (table_memfd < 0 || ftruncate(table_memfd, (off_t)size) < 0)
        return false;
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, table_memfd, 0);
    if (base == MAP_FAILED)
        return false;
    fcntl(table_memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
    keeper_keep_from_children(base, size);
    keeper_keep_from_children(processes, sizeof processes);
    keeper_keep_from_children(free_slots, sizeof free_slots);
    keeper_keep_from_children(buckets, sizeof buckets);
    table = (struct torpor_keeper_table *)base;
    table_slots = (struct torpor_keeper_slot *)(base + slot_offset);
    table_orphans = (struct torpor_keeper_orphan *)(base + orphan_offset);
    table_processes = processes;
    *table = (struct torpor_keeper_table){
        .magic = TORPOR_KEEPER_MAGIC,
        .version = TORPOR_KEEPER_PROTOCOL_VERSION,
        .slot_count = TORPOR_KEEPER_SLOTS,
        .slot_bytes = sizeof *table_slots,
        .orphan_count = TORPOR_KEEPER_ORPHANS,
        .orphan_bytes = sizeof *table_orphans,
        .slot_offset = slot_offset,
        .orphan_offset = orphan_offset,
        .orphan_next = 1,
    };
    return true;
}

int table_take_slot(void)
{
    uint32_t slot;
    if (free_count > 0)
        slot = free_slots[--free_count];
    else if (table_used < TORPOR_KEEPER_SLOTS)
        slot = table_used++;
    else
        return -1;
    uint32_t generation = table_slots[slot].generation + 1;
    bool queued = processes[slot].queued;  // the slot may still be in the queue, which skips entries without work
    memset(&table_slots[slot], 0, sizeof *table_slots);
    table_slots[slot].generation = generation;
    table_slots[slot].sequence = ++table->launches;
    processes[slot] = (struct keeper_process){.pidfd = -1, .exec_pipe = -1, .queued = queued};
    return (int)slot;
}

/// Marks a slot as free. Its record stays readable until the slot is reused, because it names the app of orphans
/// (descendants of the app whose parent has ended) that end later.
void table_free_slot(uint32_t slot)
{
    table_slots[slot].state = TORPOR_SLOT_FREE;
    processes[slot].tell = 0;
    if (processes[slot].pidfd >= 0)
        close(processes[slot].pidfd);
    processes[slot].pidfd = -1;
    free_slots[free_count++] = slot;
}

static uint32_t bucket(pid_t pid)
{
    return (uint32_t)pid % TORPOR_KEEPER_SLOTS;
}

void table_insert_pid(uint32_t slot)
{
    uint32_t *head = &buckets[bucket(table_slots[slot].pid)];
    processes[slot].hash_next = *head;
    *head = slot + 1;
    table_living++;
}

void table_remove_pid(uint32_t slot)
{
    for (uint32_t *link = &buckets[bucket(table_slots[slot].pid)]; *link != 0; link = &processes[*link - 1].hash_next)
        if (*link == slot + 1) {
            *link = processes[slot].hash_next;
            table_living--;
            return;
        }
}

int table_find_pid(pid_t pid)
{
    for (uint32_t link = buckets[bucket(pid)]; link != 0; link = processes[link - 1].hash_next)
        if (table_slots[link - 1].pid == pid)
            return (int)link - 1;
    return -1;
}

/// The id of a session is not reused while the session has members. So the latest launch with that pid is the
/// session's.
int table_find_session(pid_t session)
{
    int found = -1;
    for (uint32_t slot = 0; slot < table_used; slot++)
        if (table_slots[slot].pid == session && table_slots[slot].state != TORPOR_SLOT_FAILED
            && (found < 0 || table_slots[slot].sequence > table_slots[found].sequence))
            found = (int)slot;
    return found;
}

/// Restores the private part of a slot from the previous program; the slot itself is already there.
void table_restore_slot(uint32_t slot, const struct torpor_keeper_resume_process *from)
{
    struct keeper_process *process = &processes[slot];
    table_used = slot + 1;
    *process = (struct keeper_process){.pidfd = from->pidfd, .exec_pipe = from->exec_pipe};
    process->reaped = from->reaped;
    process->abandoned = from->abandoned;
    if (table_slots[slot].state == TORPOR_SLOT_FREE) {
        free_slots[free_count++] = slot;
        return;
    }
    if (table_slots[slot].state == TORPOR_SLOT_RUNNING && (table_slots[slot].flags & TORPOR_LAUNCH_ADOPTED)) {
        if (!adopt_watch(slot))
            keeper_log("%s is no longer watched: %s", table_slots[slot].app, strerror(errno));
        return;
    }
    if (!process->reaped)
        table_insert_pid(slot);
    if (process->exec_pipe >= 0) {
        launch_in_flight++;
        if (!keeper_watch_descriptor(process->exec_pipe, EPOLLIN, EVENT_EXEC, slot))
            keeper_log("the launch of %s is no longer watched: %s", table_slots[slot].app, strerror(errno));
    }
}

struct torpor_keeper_orphan *table_next_orphan(void)
{
    uint64_t sequence = table->orphan_next++;
    if (sequence - table->orphan_freed > TORPOR_KEEPER_ORPHANS) {
        table->orphan_freed = sequence - TORPOR_KEEPER_ORPHANS;
        table->orphan_lost++;
    }
    struct torpor_keeper_orphan *orphan = &table_orphans[sequence % TORPOR_KEEPER_ORPHANS];
    memset(orphan, 0, sizeof *orphan);
    orphan->sequence = sequence;
    return orphan;
}
