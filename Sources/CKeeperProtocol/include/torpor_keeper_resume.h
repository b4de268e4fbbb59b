/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_RESUME_H
#define TORPOR_KEEPER_RESUME_H

#include <stdint.h>

// What a keeper hands to the program that takes its place by exec (`torpor-keeper --resume FD …`), in a memfd: this
// head, a torpor_keeper_resume_process for each slot, then for each name a torpor_keeper_resume_name, the name without
// NUL, its descriptors (int32_t), then for each text that waits for the service manager its size (uint32_t) and it.
// Descriptors are numbers that stay open across the exec. A torpord that lost its keeper writes the same with no slots
// and becomes a keeper by it.
//
// History
//   1  first version

#define TORPOR_KEEPER_RESUME_MAGIC 0x75736552u  // "Resu"
#define TORPOR_KEEPER_RESUME_VERSION 1u

#define TORPOR_KEEPER_RESUME_INHERITED 32u

struct torpor_keeper_file {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t changed_seconds;      // of the last change of its contents
    int64_t changed_nanoseconds;
};

enum torpor_keeper_resume_flags {
    TORPOR_RESUME_IMAGE = 1 << 0,   // there is a good image
    TORPOR_RESUME_FAILED = 1 << 1,  // `failed` is a program that did not come up
};

struct torpor_keeper_resume {
    // These four are the same in every version.
    uint32_t magic;
    uint32_t version;
    uint32_t head_bytes;     // of this structure
    int32_t writer;          // the program that wrote this: it goes on when the new one cannot read it; -1: none

    uint32_t instance;       // of the last torpord
    uint32_t flags;
    int32_t table;           // the memfd of the slots; -1: none
    int32_t image;           // torpord's program that worked last
    uint32_t slot_count;     // slots that were used at least once
    uint32_t slot_bytes;
    uint32_t orphan_count;
    uint32_t orphan_bytes;
    uint32_t process_bytes;  // of a torpor_keeper_resume_process
    uint32_t name_count;
    uint32_t text_count;     // for the service manager
    uint32_t reserved;
    uint64_t total_bytes;    // of the whole state
    uint64_t app_nofile_soft;  // 0: what this process has
    uint64_t app_nofile_hard;
    uint64_t next_delay;     // milliseconds before torpord is started again after its next death
    uint64_t pending_signals;  // 1 << number: to be passed on to the next torpord
    int32_t inherited[TORPOR_KEEPER_RESUME_INHERITED];  // -1: none; whoever started the keeper may wait for their end
    struct torpor_keeper_file good;
    struct torpor_keeper_file failed;
};

struct torpor_keeper_resume_process {
    int32_t pidfd;      // -1: none
    int32_t exec_pipe;  // -1: exec was heard of
    uint32_t reaped;
    uint32_t abandoned;
};

struct torpor_keeper_resume_name {
    uint32_t count;          // of descriptors
    uint32_t length;         // of the name in bytes
    uint32_t parked_count;   // how many of the descriptors, from the first on, the service manager was given
    uint32_t parked_number;  // the number that the next one is given under
    uint32_t remove;         // the manager is to remove what has numbers below this
};

#endif
