/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_POLICY_WIRE_H
#define TORPOR_POLICY_WIRE_H

#include "torpor_policy.h"

/*
 * The protocol between torpor-policy-host and its parent (torpord, or torpor for its checks) over a SOCK_SEQPACKET
 * socketpair: one message per datagram, each beginning with a torpor_policy_wire_header, in the machine's byte order.
 * Neither side trusts the other: it checks every size, count and offset, and closes the socket after an invalid
 * message.
 *
 * The parent passes these file descriptors to the host:
 *   3  its end of the socketpair
 *   4  the view: a memfd that it maps read-only (torpor_policy_wire_view at its start)
 *   5  the library, open for reading: the parent has checked it
 *   6  the directory of the library, O_PATH
 *   2  a pipe for what the library writes before it dies
 * LOAD has everything else.
 *
 *   parent                        host
 *   LOAD           ──────────▶    confines itself, opens the library, confines itself further, creates the policy
 *                  ◀──────────    LOADED, or REFUSED
 *   ASK            ──────────▶    asks the policy about each event
 *                  ◀──────────    ADVICE …, ANSWERED
 *   (closes)       ──────────▶    exits
 *
 * There is one question at a time, and the view does not change before its answer.
 *
 * History
 *   1  the first
 */
#define TORPOR_POLICY_WIRE_VERSION 1u

#define TORPOR_POLICY_HOST_SOCKET 3
#define TORPOR_POLICY_HOST_VIEW 4
#define TORPOR_POLICY_HOST_LIBRARY 5
#define TORPOR_POLICY_HOST_DIRECTORY 6

#define TORPOR_POLICY_WIRE_LIMIT (32u * 1024u) /* largest message in bytes */
#define TORPOR_POLICY_EVENT_LIMIT 64u          /* most events of one question */
#define TORPOR_POLICY_REASON_LIMIT 200u        /* longest reason in bytes, without NUL */
#define TORPOR_POLICY_NAME_LIMIT 63u           /* longest name or version of a policy in bytes, without NUL */
#define TORPOR_POLICY_SENTENCE_LIMIT 1023u     /* longest sentence in bytes, without NUL */
#define TORPOR_POLICY_OPTION_LIMIT 1024u       /* most options */

enum torpor_policy_wire_type {
    TORPOR_POLICY_LOAD = 1,     /* torpor_policy_wire_load, then its strings */
    TORPOR_POLICY_ASK = 2,      /* torpor_policy_wire_ask, then its events */

    TORPOR_POLICY_LOADED = 101,   /* torpor_policy_wire_loaded, then its strings */
    TORPOR_POLICY_REFUSED = 102,  /* a sentence with its NUL: why the library is not used */
    TORPOR_POLICY_ADVICE = 103,   /* `count` torpor_policy_wire_advice entries that do not fit into ANSWERED */
    TORPOR_POLICY_ANSWERED = 104, /* torpor_policy_wire_answered, then the last `count` entries */
};

typedef struct torpor_policy_wire_header {
    uint32_t type;   /* enum torpor_policy_wire_type */
    uint32_t count;  /* LOAD: options; ASK: events; ADVICE and ANSWERED: entries; otherwise 0 */
    uint64_t serial; /* number of the question; 0 for LOAD and its answers */
} torpor_policy_wire_header;

/*
 * Followed by the path of the library, and for each option a torpor_policy_wire_option (unaligned), its key and its
 * text. Each string has its NUL.
 */
typedef struct torpor_policy_wire_load {
    torpor_policy_wire_header header;
    uint32_t version;        /* TORPOR_POLICY_WIRE_VERSION */
    uint32_t flags;          /* 0 */
    uint64_t address_space;  /* bytes of address space that the host may have (RLIMIT_AS) */
    uint32_t user;           /* the user to switch to; TORPOR_UNKNOWN: keep the current user */
    uint32_t group;
    uint64_t view_size;      /* bytes of the view to map */
    uint32_t advice_limit;   /* most pieces of advice to one question: more are refused, and the question has failed */
    uint32_t reserved;
} torpor_policy_wire_load;

typedef struct torpor_policy_wire_option {
    uint32_t type; /* enum torpor_policy_option_type */
    uint32_t reserved;
    int64_t integer;
    double number;
} torpor_policy_wire_option;

/* Followed by name, version, summary and `descriptions` strings that describe the options, each with its NUL. */
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
#define TORPOR_CONFINED_USER (1u << 2)     /* not the parent's user */

/* Followed by `header.count` events (torpor_policy_event, 8-byte aligned, event_size bytes each). */
typedef struct torpor_policy_wire_ask {
    torpor_policy_wire_header header;
    uint32_t event_size;
    uint32_t reserved;
} torpor_policy_wire_ask;

/* An entry of ADVICE or ANSWERED; followed by the reason without NUL, padded to 8 bytes. */
typedef struct torpor_policy_wire_advice {
    uint32_t event; /* index of the event in the question that it answers */
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
    uint32_t flooded;     /* 1: the policy gave more than advice_limit */
} torpor_policy_wire_answered;

/*
 * The start of the view's memory. Offsets count from its start. The capacities are fixed when it is created, so
 * that a host maps it once; only pages in use take memory.
 */
typedef struct torpor_policy_wire_view {
    uint32_t version;   /* TORPOR_POLICY_WIRE_VERSION */
    uint32_t app_count; /* places that are or were in use */
    uint32_t app_size;
    uint32_t app_capacity;
    uint64_t system_offset;
    uint64_t apps_offset;
    uint64_t strings_offset;
    uint32_t string_size;     /* bytes in use; the last byte is a NUL */
    uint32_t string_capacity;
} torpor_policy_wire_view;

#endif
