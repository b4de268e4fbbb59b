/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_TEST_APP_H
#define TORPOR_TEST_APP_H

// A program for tests to supervise: starts in a millisecond, does one of many things that apps do, and keeps a record
// of its own of what it did, in a file that is mapped and so outlives any death.
//
//   main.c     options, and the life of an app
//   truth.c    the record
//   lines.c    numbered lines on standard output
//   notify.c   sd_notify, and descriptors given into keeping
//   decoy.c    a process that nobody supervises and that no signal may reach

#include <stdbool.h>
#include <stdint.h>

/// One voice's record, `$TPTEST/t/APP.INCARNATION.VOICE`. The reader is Tests/Integration/Operations/Chaos/TruthFile.swift.
struct truth {
    char magic[8];
    uint64_t pid;
    uint64_t attempted;        // number of the line that was last begun
    uint64_t accepted;         // number of the line that write(2) last took whole
    uint64_t sigpipes;         // SIGPIPE received
    uint64_t broken_pipes;     // EPIPE seen
    uint64_t other_errors;     // other errors of write(2)
    uint64_t last_error;       // the last errno of either
    uint64_t aborts;           // SIGABRT from outside: a watchdog that fired
    uint64_t terminations;     // SIGTERM
    uint64_t two_at_once;      // another incarnation held the app's lock
    uint64_t stored_back;      // stored descriptors that came back whole
    uint64_t stored_lost;      // stored descriptors that did not come back, or with another content
    uint64_t notify_errors;    // sendmsg failed otherwise than for want of room or of a listener
    uint64_t status_number;    // the last number that a STATUS= with it was sent for
    uint64_t ready;            // READY=1 was sent
};

// truth.c
extern struct truth *truth;
extern const char *app_name;
extern const char *incarnation;
extern const char *test_folder;
void truth_open(char voice);          // replaces `truth` with that of this voice
void truth_lock(void);                // notes when another incarnation lives
uint64_t truth_epoch(void);           // how often the test took keeper and torpord away together
void truth_write_file(const char *name, uint64_t number);
bool truth_read_file(const char *name, uint64_t *number);

uint64_t chance(void);                // a pseudo-random number of 64 bits
uint64_t between(uint64_t low, uint64_t high);
void chance_seed(uint64_t salt);
uint64_t now_us(void);
void sleep_us(uint64_t us);

// lines.c
extern unsigned line_padding;
void say(int fd, char voice);

// notify.c
bool notify_send(const char *text, int fd, bool wait);
void notify_barrier(void);
void store_check(void);

// decoy.c
int decoy_main(const char *file, const char *name, int wanted_pid);

#endif
