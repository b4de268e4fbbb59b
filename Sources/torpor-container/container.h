/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CONTAINER_H
#define TORPOR_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit statuses that podman itself uses for no other purpose: podman failed (125, as podman's own); a child could not
   execute podman. */
enum { FAILED = 125, NOT_EXECUTED = 119 };

/* The command line of `start` (main.c). */
struct order {
    const char *folder, *name, *owner, *image, *pull;
    long pull_seconds, launch_ms;
    bool says_ready;
    char **arguments;
};

/* Prepares the environment for podman: remembers NOTIFY_SOCKET and LISTEN_FDS, and removes variables that podman would
   act on itself. */
void prepare_environment(void);

/* Writes variables whose names begin with TORPOR_INSIDE_, without that prefix, into a file for podman's --env-file.
   Removes them from the environment. */
void write_variables(const char *path);

/* Sets NOTIFY_SOCKET again, for the program that replaces this process. */
void restore_environment(void);

/* Closes the descriptors that torpord has passed for the container, which has its own copies now. */
void leave_to_container(void);

int start_container(const struct order *order);

/* Deletes the container whose ID is in the folder; returns true if it does not exist any longer. */
bool remove_container(const char *folder);

/* Blocks signals, so that they wait until this process reads them, and makes this process the parent of orphaned
   descendants: of conmon, which podman leaves running. */
void take_signals(void);

/* Restores the original signal mask; for a child of this process. */
void leave_signals(void);

/* A descriptor that is readable when signals have arrived. */
int signals(void);

/* Reads the signals that have arrived, and stores them to be passed on. */
void note_signals(void);

/* The number of a stored signal that asks this process to end, or 0. */
int is_asked_to_end(void);

/* Replaces this process by a fresh image of the same program, which takes little memory and has a short command line:
   `follow NAME CONMON FIRST WAITING MESSAGE`. It sends the message and follows the container. `first` is a pidfd of
   the first process inside the container, or -1. */
int follow_anew(const char *name, pid_t conmon, int first, const char *message);
int follow_words(char **words);

/* Sends a message to the app's notify socket; does nothing without one. */
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a sentence to standard error and into the app's status. Returns FAILED. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A command line under construction. If memory is short, adding to it ends the process. */
struct words {
    char **all;
    size_t count, room;
};

void add(struct words *words, const char *word);
void addf(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where the output of a command goes. */
enum output {
    OUTPUT_KEPT,      /* standard output is read into `answer`, standard error is dropped */
    OUTPUT_FOLLOWED,  /* standard error is passed on, and its last line kept in `answer` */
    OUTPUT_PASSED     /* to standard output and standard error of this process */
};

/* Runs `podman`. Returns its exit status; 128 and more if a signal ended it; -1 if it cannot be started or took
   longer than `seconds` (0: no limit). `answer` always ends with NUL. With OUTPUT_FOLLOWED, `line` is called with
   each line, and from time to time with NULL. */
int podman(struct words *words, enum output output, char *answer, size_t size, long seconds, void (*line)(const char *));

#endif
