/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_HOLD_H
#define TORPOR_KEEPER_HOLD_H

// What hold.c (keeping), held.c (reading) and park.c (the service manager's copy) share. Links are index + 1, 0 is none.

#include "keeper.h"

enum { HOLD_BRIEF_BYTES = 40 };

struct hold_name {
    char *text;                    // `brief`, where it fits
    char brief[HOLD_BRIEF_BYTES];
    uint32_t hash_next;
    uint32_t first, last;
    uint32_t count;      // 0: nothing is held; the entry is free, or waits for the manager to be told
    uint32_t unparked;   // the first descriptor that the manager is still to be given
    uint32_t parked;     // the number that it is given under; what the manager has is numbered below
    uint32_t remove;     // before that the manager is to remove what has numbers below this
    bool used;
    bool queued;         // park.c has it in its queue
};

struct hold_entry {
    int fd;
    uint32_t next;
};

extern struct hold_name hold_names[TORPOR_KEEPER_NAME_COUNT];
extern struct hold_entry hold_entries[TORPOR_KEEPER_HELD_COUNT];
extern uint32_t hold_names_used;  // entries below this index were used at least once

struct hold_name *hold_find(const char *name);
struct hold_name *hold_name_for(const char *name);  // a new one if need be; NULL: there is no room
void hold_free_name(struct hold_name *name);
bool hold_is_foreign(const char *name);                // an app has made it

// park.c
void park(struct hold_name *name);                       // something about it is to be told to the manager
void park_has(struct hold_name *name, uint32_t number);  // the manager has it: it has just given it
void park_restore(struct hold_name *name, const struct torpor_keeper_resume_name *from);
uint32_t park_offset(const struct hold_name *name);      // how many of the descriptors come before `unparked`

#endif
