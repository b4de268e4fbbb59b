/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_HOLD_H
#define TORPOR_KEEPER_HOLD_H

// Shared by hold.c (storing), held.c (reading) and park.c (the service manager's copies). Links between entries are
// an index + 1; 0 means none.

#include "keeper.h"

enum { HOLD_BRIEF_BYTES = 40 };

struct hold_name {
    char *text;                    // points to `brief` if the name fits there
    char brief[HOLD_BRIEF_BYTES];
    uint32_t hash_next;
    uint32_t first, last;
    uint32_t count;      // 0: the entry is free, or will be once the manager is notified
    uint32_t unparked;   // the first descriptor that was not sent to the manager yet
    uint32_t parked;     // the manager's number for `unparked`; the manager has those with lower numbers
    uint32_t remove;     // before it sends `unparked`, the keeper tells the manager to remove lower numbers than this
    bool used;
    bool queued;         // the name is in the queue of park.c
};

struct hold_entry {
    int fd;
    uint32_t next;
};

extern struct hold_name hold_names[TORPOR_KEEPER_NAME_COUNT];
extern struct hold_entry hold_entries[TORPOR_KEEPER_HELD_COUNT];
extern uint32_t hold_names_used;  // entries from this index on were never used

struct hold_name *hold_find(const char *name);
struct hold_name *hold_name_for(const char *name);  // creates the entry if necessary; NULL: no room
void hold_free_name(struct hold_name *name);
bool hold_is_foreign(const char *name);                // an app stores under this name
bool hold_may_block(const char *name, int fd);         // whether the last close may block

// park.c
void park(struct hold_name *name);                       // queues a changed name, to notify the manager
void park_has(struct hold_name *name, uint32_t number);  // the manager already has this number
void park_restore(struct hold_name *name, const struct torpor_keeper_resume_name *from);
uint32_t park_offset(const struct hold_name *name);      // how many descriptors precede `unparked`

#endif
