/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_RESUME_H
#define TORPOR_KEEPER_RESUME_H

#include <stdint.h>

// The state that a keeper passes across exec to its next program (`torpor-keeper --resume FD …`), in a memfd: this
// header; a torpor_keeper_resume_process for each slot; for each name a torpor_keeper_resume_name, the name without NUL
// and its descriptors (int32_t); for each queued message to the service manager its size (uint32_t) and text.
// Descriptors keep their numbers across the exec. A torpord that lost its keeper writes this state without slots, and
// executes torpor-keeper with it to become a keeper.
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
    int64_t changed_seconds;      // last change of its content
    int64_t changed_nanoseconds;
};

enum torpor_keeper_resume_flags {
    TORPOR_RESUME_IMAGE = 1 << 0,   // `good` and `image` are valid
    TORPOR_RESUME_FAILED = 1 << 1,  // `failed` is valid: a program that did not come up
};

struct torpor_keeper_resume {
    // These four fields are the same in every version.
    uint32_t magic;
    uint32_t version;
    uint32_t head_bytes;     // of this structure
    int32_t writer;          // the writing program, executed again if the new program cannot read this; -1: none

    uint32_t instance;       // number of the last torpord
    uint32_t flags;
    int32_t table;           // the memfd of the slots; -1: none
    int32_t image;           // descriptor of the torpord executable that last worked
    uint32_t slot_count;     // slots that were ever used
    uint32_t slot_bytes;
    uint32_t orphan_count;
    uint32_t orphan_bytes;
    uint32_t process_bytes;  // size of a torpor_keeper_resume_process
    uint32_t name_count;
    uint32_t text_count;     // messages for the service manager
    uint32_t reserved;
    uint64_t total_bytes;    // of the whole state
    uint64_t app_nofile_soft;  // 0: this process's limit
    uint64_t app_nofile_hard;
    uint64_t next_delay;     // milliseconds before torpord is restarted after its next death
    uint64_t pending_signals;  // 1 << number: to forward to the next torpord
    int32_t inherited[TORPOR_KEEPER_RESUME_INHERITED];  // -1: none; kept open, since the starter may wait for their end
    struct torpor_keeper_file good;
    struct torpor_keeper_file failed;
};

struct torpor_keeper_resume_process {
    int32_t pidfd;      // -1: none
    int32_t exec_pipe;  // -1: exec was reported
    uint32_t reaped;
    uint32_t abandoned;
};

struct torpor_keeper_resume_name {
    uint32_t count;          // of descriptors
    uint32_t length;         // of the name in bytes
    uint32_t parked_count;   // how many of the descriptors, from the first, the service manager was sent
    uint32_t parked_number;  // the number for the next descriptor that is sent to the manager
    uint32_t remove;         // the manager must remove lower numbers than this
};

#endif
