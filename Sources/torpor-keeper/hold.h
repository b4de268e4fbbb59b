/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_HOLD_H
#define TORPOR_KEEPER_HOLD_H

// Shared by hold.c (storing), held.c (reading) and park.c (the service manager's copy). Links are index + 1; 0 means
// none.

#include "keeper.h"

enum { HOLD_BRIEF_BYTES = 40 };

struct hold_name {
    char *text;                    // `brief`, if it fits
    char brief[HOLD_BRIEF_BYTES];
    uint32_t hash_next;
    uint32_t first, last;
    uint32_t count;      // 0: nothing is held; the entry is free, or the manager must be notified first
    uint32_t unparked;   // the first descriptor that the manager has not been sent yet
    uint32_t parked;     // the number that it is sent with; those the manager has are numbered below
    uint32_t remove;     // first the manager must remove those numbered below this
    bool used;
    bool queued;         // it is in park.c's queue
};

struct hold_entry {
    int fd;
    uint32_t next;
};

extern struct hold_name hold_names[TORPOR_KEEPER_NAME_COUNT];
extern struct hold_entry hold_entries[TORPOR_KEEPER_HELD_COUNT];
extern uint32_t hold_names_used;  // entries from this index on were never used

struct hold_name *hold_find(const char *name);
struct hold_name *hold_name_for(const char *name);  // created if necessary; NULL: no room
void hold_free_name(struct hold_name *name);
bool hold_is_foreign(const char *name);                // created by an app

// park.c
void park(struct hold_name *name);                       // queues it: the manager must be notified of a change
void park_has(struct hold_name *name, uint32_t number);  // the manager passed it to us, so it has it
void park_restore(struct hold_name *name, const struct torpor_keeper_resume_name *from);
uint32_t park_offset(const struct hold_name *name);      // how many of its descriptors precede `unparked`

#endif
