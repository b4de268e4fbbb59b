/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CONTAINER_H
#define TORPOR_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What podman exits with if it failed itself, and what a child that could not execute podman does: none of podman's own. */
enum { FAILED = 125, NOT_EXECUTED = 119 };

/* What `start` is told. */
struct order {
    const char *folder, *name, *owner, *image, *pull;
    long pull_seconds, launch_ms;
    bool says_ready;
    char **arguments;
};

/* Takes what is meant for the container out of this process's environment: podman would go by it. */
void prepare_environment(void);

/* Writes the variables that begin with TORPOR_INSIDE_, without that, into a file for podman's --env-file, and removes them from
   the environment. */
void write_variables(const char *path);

/* Puts it back for a fresh image of this program. */
void restore_environment(void);

/* Closes the descriptors that the container has by now. */
void leave_to_container(void);

int start_container(const struct order *order);

/* Deletes the container whose ID is in the folder; true if there is none any longer. */
bool remove_container(const char *folder);

/* From here on signals wait until this process is ready for them, and it becomes the parent of what podman leaves running:
   conmon. */
void take_signals(void);

/* In a child: as they were. */
void leave_signals(void);

/* Readable when signals have come. */
int signals(void);

/* Reads them. */
void note_signals(void);

/* The signal by which this process was asked to end, or 0. */
int is_asked_to_end(void);

/* Follows the container in a fresh image of this program, with a short command line and little memory, which first sends the
   message: `follow NAME CONMON FIRST WAITING MESSAGE`. `first`: a pidfd of the first process inside, or -1. */
int follow_anew(const char *name, pid_t conmon, int first, const char *message);
int follow_words(char **words);

/* Sends a message to the app's notify socket; does nothing without one. */
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a sentence to standard error and into the app's status, and returns FAILED. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A command line under construction. Ends the process if memory is short. */
struct words {
    char **all;
    size_t count, room;
};

void add(struct words *words, const char *word);
void addf(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where a command's output goes. */
enum output {
    OUTPUT_KEPT,      /* standard output is read into `answer`, standard error dropped */
    OUTPUT_FOLLOWED,  /* standard error is read line by line, into `answer` the last one, and passed on */
    OUTPUT_PASSED     /* both are this process's */
};

/* Runs `podman`; returns its exit status, 128 and more if a signal ended it, -1 if it cannot be started or `seconds` (0: no
   limit) were not enough. `answer` always ends in NUL. `line` is called with each line that is followed. */
int podman(struct words *words, enum output output, char *answer, size_t size, long seconds, void (*line)(const char *));

#endif
