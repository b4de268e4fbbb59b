/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CONTAINER_H
#define TORPOR_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit statuses that podman itself uses for no other purpose: podman failed (125, as podman's own); a child could not
   execute podman. */
enum { FAILED = 125, NOT_EXECUTED = 119 };

/* How long podman may take to answer a question. */
enum { QUERY_SECONDS = 60 };

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

/* Paths of files in a folder, and their first lines. `place` returns false if the path is too long (PATH_MAX);
   `read_line` if the file or the line is missing. */
bool place(char *path, const char *folder, const char *name);
bool read_line(const char *folder, const char *name, char *text, size_t size);
void write_line(const char *folder, const char *name, const char *text);
void delete(const char *folder, const char *name);

/* Notes in the folder that podman is about to start the container, and what podman's networks have made before; and
   that the container runs. */
void note_run(const char *folder, const char *name);
void forget_run(const char *folder);

/* Removes what a `podman run` has left that was noted and has not come to its end; returns false if it cannot. */
bool undo_run(const char *folder);

/* Removes the folder that contains the temporary files of a pull. */
void remove_pulled(const char *folder);

/* Deletes the container with this ID or name. */
bool remove_by_id(const char *id);

/* Whether podman has only files, but no record, of a container with this name. That happens when podman is killed
   while it creates the container. */
bool is_external(const char *name);

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

/* Begins a command line of podman. */
void begin(struct words *words);
void add(struct words *words, const char *word);
void addf(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where the output of a command goes. */
enum output {
    OUTPUT_KEPT,      /* standard output is read into `answer`, standard error is dropped */
    OUTPUT_FOLLOWED,  /* standard error is passed on, and its last line kept in `answer` */
    OUTPUT_PASSED     /* to standard output and standard error of this process */
};

/* Runs `podman`, or the program that is the first word. Returns its exit status; 128 and more if a signal ended it; -1 if it cannot be started or took
   longer than `seconds` (0: no limit). `answer` always ends with NUL. With OUTPUT_FOLLOWED, `line` is called with
   each line, and from time to time with NULL. */
int podman(struct words *words, enum output output, char *answer, size_t size, long seconds, void (*line)(const char *));

#endif
