/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_PROTOCOL_H
#define TORPOR_KEEPER_PROTOCOL_H

#include <stdint.h>

#include "torpor_keeper_resume.h"

// The protocol between torpor-keeper and torpord over a SOCK_SEQPACKET socketpair: one message per datagram, each
// starting with a torpor_keeper_header, in native byte order, with descriptors as SCM_RIGHTS. The keeper creates the
// pair; torpord finds its end in TORPOR_KEEPER_FD.
//
// History
//   1  first version: HELLO, LAUNCH, SLOT_FREE, ORPHAN_FREE, HOLD, RELEASE, TAKE, LIST, MANAGER, BYE
//   2  ADOPT, TAKE_ALL, HANDOVER, SETTLED; flags in HOLD and BYE; LAUNCHED with id 0 for a launch of an earlier
//      torpord; in WELCOME whether torpord was started from a kept image, and the version of the resume state.
//      Later additions: REST, which an older keeper refuses without harm; files by path in LAUNCH, if WELCOME says
//      that the keeper supports them; a status in BYE, which an older keeper ignores
//   3  sandboxes in LAUNCH, and the stage SANDBOX. If the keeper refuses HELLO with 3, torpord says HELLO with 2, and
//      launches no app in a sandbox. A keeper of version 3 also serves a torpord of version 2, because a failed
//      upgrade starts the old torpord again.
//      Later additions: OWN_IPC and LOG_DENIALS in LAUNCH, if WELCOME says that the keeper supports them; an older
//      keeper launches without them
//   4  many records in one TABLE, each with how many of the descriptors are its. A torpord that is refused says HELLO
//      with the version before

#define TORPOR_KEEPER_PROTOCOL_VERSION 4u
#define TORPOR_KEEPER_OLDEST_VERSION 2u   // the oldest torpord that this keeper serves

#define TORPOR_KEEPER_SLOTS 16384u
#define TORPOR_KEEPER_ORPHANS 1024u
#define TORPOR_KEEPER_IN_FLIGHT 256u        // launches whose exec is not reported yet
#define TORPOR_KEEPER_NAME_COUNT 32768u     // names under which descriptors are held
#define TORPOR_KEEPER_HELD_COUNT 131072u    // descriptors held
#define TORPOR_KEEPER_DESCRIPTORS 253u      // SCM_MAX_FD of Linux
#define TORPOR_KEEPER_PLAN_LIMIT (192u * 1024u)
#define TORPOR_KEEPER_STRINGS 8192u         // arguments, and environment entries, of one plan
#define TORPOR_KEEPER_MANAGER_LIMIT 8192u
#define TORPOR_KEEPER_REPLY_LIMIT (32u * 1024u)
#define TORPOR_KEEPER_APP_BYTES 64u         // with the NUL
#define TORPOR_KEEPER_NAME_BYTES 384u       // with the NUL; FDNAME= allows 255, and the app's name precedes it
#define TORPOR_KEEPER_FOREIGN "store/"     // prefix of names whose descriptors apps created
#define TORPOR_KEEPER_GROUP_LIMIT 1024u
#define TORPOR_KEEPER_LIMIT_LIMIT 32u
#define TORPOR_KEEPER_FILTER_LIMIT 256u     // instructions of a sandbox's seccomp filter
#define TORPOR_KEEPER_MAGIC 0x70726f54u     // "Torp"

enum torpor_keeper_type {
    // from torpord
    TORPOR_KEEPER_HELLO = 1,        // torpor_keeper_number: version
    TORPOR_KEEPER_LAUNCH = 2,       // torpor_keeper_launch …, descriptors
    TORPOR_KEEPER_SLOT_FREE = 3,    // torpor_keeper_slot_free; no answer
    TORPOR_KEEPER_ORPHAN_FREE = 4,  // torpor_keeper_orphan_free; no answer
    TORPOR_KEEPER_HOLD = 5,         // torpor_keeper_number (hold flags), name, NUL; descriptors; answered by DONE
    TORPOR_KEEPER_RELEASE = 6,      // name, NUL; answered by DONE
    TORPOR_KEEPER_TAKE = 7,         // torpor_keeper_number (offset), name, NUL; answered by TAKEN
    TORPOR_KEEPER_LIST = 8,         // torpor_keeper_number (cursor, 0 first); answered by NAMES
    TORPOR_KEEPER_MANAGER = 9,      // text for NOTIFY_SOCKET; no answer
    // BYE: the next exit of torpord is intended. The keeper then exits with this status, even if torpord is killed.
    TORPOR_KEEPER_BYE = 10,         // torpor_keeper_pair (bye flags, status); no answer
    TORPOR_KEEPER_ADOPT = 11,       // torpor_keeper_adopt, app, NUL; pidfd; answered by DONE
    TORPOR_KEEPER_TAKE_ALL = 12,    // torpor_keeper_pair (cursor, 0 and 0 first); answered by HELD
    // HANDOVER: when this torpord exits, the keeper starts the next torpord at once. Ignored before SETTLED.
    TORPOR_KEEPER_HANDOVER = 13,    // torpor_keeper_number (hand-over flags); no answer
    TORPOR_KEEPER_SETTLED = 14,     // header: torpord has recovered and is in charge; no answer
    TORPOR_KEEPER_REST = 15,        // header: idle, so free memory; no answer

    // from the keeper
    TORPOR_KEEPER_WELCOME = 101,        // torpor_keeper_welcome, memfd of the table, timerfd of the watchdog
    // TABLE: a record for each living process, of as many as fit, and their pidfds. Before version 4, one in a message.
    TORPOR_KEEPER_TABLE = 102,          // torpor_keeper_record …, pidfds
    TORPOR_KEEPER_TABLE_END = 103,      // torpor_keeper_number: count of records in TABLE messages
    TORPOR_KEEPER_LAUNCHED = 104,       // torpor_keeper_record, pidfd; id 0: TABLE reported it as LAUNCHING
    TORPOR_KEEPER_LAUNCH_FAILED = 105,  // torpor_keeper_failure
    TORPOR_KEEPER_EXITED = 106,         // torpor_keeper_record
    TORPOR_KEEPER_ORPHAN = 107,         // torpor_keeper_orphan_message
    TORPOR_KEEPER_DONE = 108,           // torpor_keeper_number: errno, 0 for success
    TORPOR_KEEPER_TAKEN = 109,          // torpor_keeper_pair: errno, count of all descriptors of that name; descriptors
    TORPOR_KEEPER_NAMES = 110,          // torpor_keeper_pair: next cursor (0 at the end), count; names, each with NUL
    TORPOR_KEEPER_REFUSED = 111,        // torpor_keeper_number: errno; the message with that id was not understood
    // HELD: descriptors with their names. After the names come the descriptors, those of each name together.
    TORPOR_KEEPER_HELD = 112,           // torpor_keeper_held; for each name: count of descriptors (uint16_t), name, NUL
};

enum torpor_keeper_hold_flags {
    TORPOR_HOLD_REPLACE = 1 << 0,  // once the new descriptors are held, release those that the name held before
    TORPOR_HOLD_QUIET = 1 << 1,    // answer only on failure; a keeper that does not know this flag always answers
};

enum torpor_keeper_bye_flags {
    TORPOR_BYE_KEEP_PARKED = 1 << 0,  // keep the service manager's copies of descriptors for the next start
    TORPOR_BYE_STATUS = 1 << 1,       // a status follows; without this flag, the status of the exit applies
};

enum torpor_keeper_handover_flags {
    TORPOR_HANDOVER_KEEPER = 1 << 0,  // the keeper executes its program again before it starts torpord
};

// The start of every message. The requester chooses `id`, and the answer repeats it. Unrequested messages have id 0.
struct torpor_keeper_header {
    uint32_t type;
    uint32_t id;
};

struct torpor_keeper_number {
    struct torpor_keeper_header header;
    uint32_t value;
};

struct torpor_keeper_pair {
    struct torpor_keeper_header header;
    uint32_t first;
    uint32_t second;
};

// The stages at which a launch can fail, in order.
enum torpor_keeper_stage {
    TORPOR_STAGE_NONE = 0,
    TORPOR_STAGE_PLAN = 1,          // the plan could not be read
    TORPOR_STAGE_SLOT = 2,          // no free slot, or too many launches in flight (EAGAIN)
    TORPOR_STAGE_FORK = 3,
    TORPOR_STAGE_SESSION = 4,
    TORPOR_STAGE_SIGNALS = 5,
    TORPOR_STAGE_CGROUP = 6,
    TORPOR_STAGE_DESCRIPTORS = 7,
    TORPOR_STAGE_LIMITS = 8,
    TORPOR_STAGE_PRIORITY = 9,
    TORPOR_STAGE_OOM = 10,
    TORPOR_STAGE_GROUPS = 11,
    TORPOR_STAGE_GROUP = 12,
    TORPOR_STAGE_USER = 13,
    TORPOR_STAGE_DIRECTORY = 14,
    TORPOR_STAGE_EXEC = 15,
    TORPOR_STAGE_INPUT = 16,        // opening standard input's file; before LIMITS, or after DIRECTORY
    TORPOR_STAGE_ERROR = 17,        // opening standard error's file; before LIMITS, or after DIRECTORY
    TORPOR_STAGE_SANDBOX = 18,      // after DIRECTORY, before the app's user opens files
};

enum torpor_keeper_launch_flags {
    TORPOR_LAUNCH_HELPER = 1 << 0,       // the keeper kills the process when torpord dies
    TORPOR_LAUNCH_STDIN = 1 << 1,        // the first descriptor is standard input; without this flag, /dev/null
    TORPOR_LAUNCH_STDOUT = 1 << 2,
    TORPOR_LAUNCH_STDERR = 1 << 3,
    TORPOR_LAUNCH_CGROUP = 1 << 4,       // the last descriptor is the cgroup's directory
    TORPOR_LAUNCH_DIRECTORY = 1 << 5,
    TORPOR_LAUNCH_USER = 1 << 6,
    TORPOR_LAUNCH_UMASK = 1 << 7,
    TORPOR_LAUNCH_NICE = 1 << 8,
    TORPOR_LAUNCH_OOM = 1 << 9,
    TORPOR_LAUNCH_LISTEN_PID = 1 << 10,  // the child writes its pid over the value of LISTEN_PID= (room for 10 digits)
    TORPOR_LAUNCH_WATCHDOG_PID = 1 << 11,
    TORPOR_LAUNCH_ADOPTED = 1 << 12,     // in slots only: another program launched it; the keeper watches its pidfd
    TORPOR_LAUNCH_INPUT_FILE = 1 << 13,  // the child opens standard input itself; not with STDIN
    TORPOR_LAUNCH_ERROR_FILE = 1 << 14,  // the child opens standard error itself, to append to it; not with STDERR
    TORPOR_LAUNCH_SANDBOX = 1 << 15,     // no new privileges, and a seccomp filter; like RULESET, since version 3
    TORPOR_LAUNCH_RULESET = 1 << 16,     // a Landlock ruleset is the descriptor before the cgroup's; with SANDBOX
    TORPOR_LAUNCH_OWN_IPC = 1 << 17,     // an IPC namespace of its own, where the kernel allows it; with SANDBOX
    TORPOR_LAUNCH_LOG_DENIALS = 1 << 18, // the kernel logs to audit what Landlock denies, if it can; with RULESET
};

enum torpor_keeper_features {
    TORPOR_KEEPER_FILES = 1 << 0,  // supports INPUT_FILE and ERROR_FILE
    TORPOR_KEEPER_WALLS = 1 << 1,  // supports OWN_IPC and LOG_DENIALS
};

struct torpor_keeper_limit {
    uint32_t resource;
    uint32_t reserved;
    uint64_t soft;
    uint64_t hard;
};

// Instructions of a seccomp filter (struct sock_filter).
struct torpor_keeper_instruction {
    uint16_t code;
    uint8_t if_true;
    uint8_t if_false;
    uint32_t value;
};

// Followed by, in this order:
//   limits
//   groups (uint32_t each)
//   if SANDBOX is set: the count of the filter's instructions (uint32_t), then the instructions
//   strings, each with its NUL: app, executable, directory (empty if none), the files of standard input and error if
//   the flags say so (absolute paths), arguments, environment
//
// Descriptors: standard input, output and error if the flags say so; those that become 3, 4, …; the Landlock ruleset;
// the cgroup's directory.
struct torpor_keeper_launch {
    struct torpor_keeper_header header;
    uint32_t incarnation;
    uint32_t flags;
    uint32_t user;
    uint32_t group;
    uint32_t umask;
    int32_t nice;
    int32_t oom_score_adjust;
    uint32_t passed_count;
    uint32_t limit_count;
    uint32_t group_count;
    uint32_t argument_count;
    uint32_t environment_count;
};

// Assigns a slot to a living process that this keeper did not launch. A helper cannot be adopted.
struct torpor_keeper_adopt {
    struct torpor_keeper_header header;
    uint32_t incarnation;
    int32_t pid;
    uint64_t start_time;
};

// The cursor: the next name, and how many of its descriptors were already sent; both 0 at the end.
struct torpor_keeper_held {
    struct torpor_keeper_header header;
    uint32_t next_name;
    uint32_t next_offset;
    uint32_t count;   // number of names in this message
};

enum torpor_keeper_state {
    TORPOR_SLOT_FREE = 0,
    TORPOR_SLOT_LAUNCHING = 1,  // the process exists, exec is not reported yet
    TORPOR_SLOT_RUNNING = 2,
    TORPOR_SLOT_EXITED = 3,     // reaped; until SLOT_FREE
    TORPOR_SLOT_FAILED = 4,     // exec failed; the child is not reaped yet, or torpord is not notified yet
};

// A process that the keeper launched or adopted. Used in the table (a memfd that only the keeper can write) and in
// messages.
struct torpor_keeper_slot {
    uint32_t state;
    uint32_t generation;      // how often this slot was used
    int32_t pid;
    uint32_t incarnation;
    uint64_t sequence;        // number of the launch
    uint64_t start_time;      // clock ticks after boot, field 22 of /proc/PID/stat
    uint32_t flags;           // torpor_keeper_launch_flags
    int32_t code;             // CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0: ended, but unknown how
    int32_t status;           // exit status, or signal
    uint32_t stage;           // where the launch failed, if it failed while torpord was not running
    uint32_t error;
    uint32_t reserved;
    uint64_t user_microseconds;
    uint64_t system_microseconds;
    uint64_t max_resident_bytes;
    uint64_t ended_microseconds;  // CLOCK_MONOTONIC when it was reaped
    char app[TORPOR_KEEPER_APP_BYTES];
};

// A process that the keeper did not launch: a descendant of an app, reparented to the keeper when its parent died.
struct torpor_keeper_orphan {
    uint64_t sequence;        // starts at 1
    int32_t pid;
    int32_t session;
    uint64_t start_time;
    int32_t code;
    int32_t status;
    uint64_t user_microseconds;
    uint64_t system_microseconds;
    uint64_t max_resident_bytes;
    uint32_t attributed;      // 1: app and incarnation are known, from its session
    uint32_t incarnation;
    char app[TORPOR_KEEPER_APP_BYTES];
    char comm[16];
    char cgroup[128];         // the end of its cgroup v2 path, empty if there is none
};

// The start of the memfd; slots and orphans follow at the given offsets.
struct torpor_keeper_table {
    uint32_t magic;
    uint32_t version;
    uint32_t slot_count;
    uint32_t slot_bytes;
    uint32_t orphan_count;
    uint32_t orphan_bytes;
    uint64_t slot_offset;
    uint64_t orphan_offset;
    uint64_t orphan_next;     // sequence of the next orphan
    uint64_t orphan_freed;    // torpord has persisted all orphans up to this sequence
    uint64_t orphan_lost;     // overwritten before torpord read them
    uint64_t launches;
};

struct torpor_keeper_record {
    struct torpor_keeper_header header;
    uint32_t slot;
    uint32_t descriptors;     // in TABLE since version 4: how many of the message's descriptors are this record's
    struct torpor_keeper_slot record;
};

struct torpor_keeper_orphan_message {
    struct torpor_keeper_header header;
    struct torpor_keeper_orphan record;
};

struct torpor_keeper_failure {
    struct torpor_keeper_header header;
    uint32_t stage;
    uint32_t error;
};

struct torpor_keeper_slot_free {
    struct torpor_keeper_header header;
    uint32_t slot;
    uint32_t generation;
};

struct torpor_keeper_orphan_free {
    struct torpor_keeper_header header;
    uint64_t sequence;        // of the orphan to free; all orphans before it are freed too
};

struct torpor_keeper_welcome {
    struct torpor_keeper_header header;
    uint32_t version;
    uint32_t instance;            // how many torpords this keeper has started, including this one
    uint32_t watch_milliseconds;  // the timeout to arm the timerfd with; 0: no watchdog
    uint32_t under_manager;       // 1: there is a NOTIFY_SOCKET
    uint64_t app_nofile_soft;     // RLIMIT_NOFILE of apps, unless their plan sets it
    int32_t keeper_pid;
    uint32_t started_from_image;  // 1: the program on disk failed, so this is the one that worked before
    uint32_t resume_version;      // version of the state that this keeper writes before it executes itself
    uint32_t features;            // torpor_keeper_features; 0 from older keepers
};

// A request to `torpor-keeper --receive` is a message of one byte.
enum {
    TORPOR_RECEIVE_OPEN = 1,  // open the next datagram's descriptors, and leave the datagram in the queue
    TORPOR_RECEIVE_DROP = 2,  // remove the next datagram, without opening its descriptors
};

// The answer to a request. The descriptors whose closing cannot block come with it.
struct torpor_keeper_received {
    uint32_t error;    // errno if no datagram could be read, else 0
    uint32_t refused;  // how many descriptors were dropped, because closing them could block torpord
    uint32_t lost;     // 1: some descriptors could not be received; unknown which. 2: answers TORPOR_RECEIVE_DROP
};

#endif
