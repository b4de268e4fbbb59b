/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_POLICY_WIRE_H
#define TORPOR_POLICY_WIRE_H

#include "torpor_policy.h"

/*
 * What torpor-policy-host and whoever started it (torpord, or torpor for its checks) say to each other over a
 * SOCK_SEQPACKET socketpair: one message a datagram, each beginning with a torpor_policy_wire_header, in the machine's
 * own byte order. Neither trusts the other: every size, count and offset is checked, and a message that is wrong in any
 * way ends the conversation.
 *
 * The host is started with its descriptors in these places:
 *   3  its end of the socketpair
 *   4  the view: a memfd that it maps for reading only (torpor_policy_wire_view at its start)
 *   5  the library, open for reading: checked by whoever started the host
 *   6  the directory of the library, O_PATH
 *   2  a pipe that takes what the library writes before it dies
 * and is told the rest by LOAD.
 *
 *   parent                        host
 *   LOAD           ──────────▶    confines itself, opens the library, confines itself further, creates the policy
 *                  ◀──────────    LOADED, or REFUSED
 *   ASK            ──────────▶    asks the policy about each event
 *                  ◀──────────    ADVICE …, ANSWERED
 *   (closes)       ──────────▶    exits
 *
 * One question is under way at a time, and the view does not change while it is.
 *
 * History
 *   1  the first
 */
#define TORPOR_POLICY_WIRE_VERSION 1u

#define TORPOR_POLICY_HOST_SOCKET 3
#define TORPOR_POLICY_HOST_VIEW 4
#define TORPOR_POLICY_HOST_LIBRARY 5
#define TORPOR_POLICY_HOST_DIRECTORY 6

#define TORPOR_POLICY_WIRE_LIMIT (32u * 1024u) /* bytes of a message */
#define TORPOR_POLICY_EVENT_LIMIT 64u          /* events of one question */
#define TORPOR_POLICY_REASON_LIMIT 200u        /* bytes of a reason, without NUL */
#define TORPOR_POLICY_NAME_LIMIT 63u           /* bytes of a policy's name and version, without NUL */
#define TORPOR_POLICY_SENTENCE_LIMIT 1023u     /* bytes of a sentence, without NUL */
#define TORPOR_POLICY_OPTION_LIMIT 1024u       /* options */

enum torpor_policy_wire_type {
    TORPOR_POLICY_LOAD = 1,     /* torpor_policy_wire_load, then its strings */
    TORPOR_POLICY_ASK = 2,      /* torpor_policy_wire_ask, then its events */

    TORPOR_POLICY_LOADED = 101,   /* torpor_policy_wire_loaded, then its strings */
    TORPOR_POLICY_REFUSED = 102,  /* a sentence with its NUL: why the library is not used */
    TORPOR_POLICY_ADVICE = 103,   /* torpor_policy_wire_advice entries, as many as count says: what does not fit into
                                     ANSWERED */
    TORPOR_POLICY_ANSWERED = 104, /* torpor_policy_wire_answered, then the last entries, as many as count says */
};

typedef struct torpor_policy_wire_header {
    uint32_t type;   /* enum torpor_policy_wire_type */
    uint32_t count;  /* LOAD: options; ASK: events; ADVICE and ANSWERED: entries; otherwise 0 */
    uint64_t serial; /* of the question; 0 for LOAD and its answers */
} torpor_policy_wire_header;

/*
 * Then, one behind the other, each with its NUL: the path of the library, and for each option its key and its text;
 * before each key a torpor_policy_wire_option (unaligned).
 */
typedef struct torpor_policy_wire_load {
    torpor_policy_wire_header header;
    uint32_t version;        /* TORPOR_POLICY_WIRE_VERSION */
    uint32_t flags;          /* 0 */
    uint64_t address_space;  /* bytes of address space that the host may have (RLIMIT_AS) */
    uint32_t user;           /* whom to become; TORPOR_UNKNOWN: stay who you are */
    uint32_t group;
    uint64_t view_size;      /* bytes of the view to map */
    uint32_t advice_limit;   /* pieces of advice to one question: more are refused, and the question has failed */
    uint32_t reserved;
} torpor_policy_wire_load;

typedef struct torpor_policy_wire_option {
    uint32_t type; /* enum torpor_policy_option_type */
    uint32_t reserved;
    int64_t integer;
    double number;
} torpor_policy_wire_option;

/* Then name, version and summary, each with its NUL; then the strings of the options' description, `descriptions` of
   them. */
typedef struct torpor_policy_wire_loaded {
    torpor_policy_wire_header header;
    uint32_t abi;
    uint32_t descriptions;
    uint64_t events;
    uint64_t needs;
    uint32_t confinement; /* TORPOR_CONFINED_… */
    uint32_t reserved;
} torpor_policy_wire_loaded;

#define TORPOR_CONFINED_LANDLOCK (1u << 0) /* files */
#define TORPOR_CONFINED_SECCOMP (1u << 1)  /* system calls */
#define TORPOR_CONFINED_USER (1u << 2)     /* another user than its parent */

/* Then `header.count` events (torpor_policy_event, 8-byte aligned; walk them by event_size). */
typedef struct torpor_policy_wire_ask {
    torpor_policy_wire_header header;
    uint32_t event_size;
    uint32_t reserved;
} torpor_policy_wire_ask;

/* An entry of ADVICE or ANSWERED; then the reason without NUL, filled up to 8 bytes. */
typedef struct torpor_policy_wire_advice {
    uint32_t event; /* which of the question's events it answers */
    uint32_t kind;
    uint32_t app;
    uint32_t value;
    int64_t time;
    uint32_t reason_bytes; /* 0 for none */
    uint32_t reserved;
} torpor_policy_wire_advice;

typedef struct torpor_policy_wire_answered {
    torpor_policy_wire_header header;
    uint64_t decided;     /* bit n: the policy has decided about event n */
    uint32_t advice_count; /* pieces of advice that were sent for this question, in all its messages */
    uint32_t flooded;     /* 1: it wanted to give more than advice_limit */
} torpor_policy_wire_answered;

/*
 * The start of the view's memory. The offsets are from its start; the capacities were fixed when it was made, so a
 * host maps it once. Only pages in use take memory.
 */
typedef struct torpor_policy_wire_view {
    uint32_t version;   /* TORPOR_POLICY_WIRE_VERSION */
    uint32_t app_count; /* places in use or once in use */
    uint32_t app_size;
    uint32_t app_capacity;
    uint64_t system_offset;
    uint64_t apps_offset;
    uint64_t strings_offset;
    uint32_t string_size;     /* bytes in use; the last one is a NUL */
    uint32_t string_capacity;
} torpor_policy_wire_view;

#endif
