/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CONTAINER_H
#define TORPOR_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit statuses of torpor-container and its children: podman failed (125, which podman itself uses for that); a child
   could not execute podman (119, which podman uses for nothing). */
enum { FAILED = 125, NOT_EXECUTED = 119 };

/* The size of an IP address as text, with what rules have around it before a port: `10.88.0.2:`, `[fd00::2]:`. */
enum { ADDRESS_SIZE = 50 };

/* How many seconds podman may take to answer a query. */
enum { QUERY_SECONDS = 60 };

/* The arguments of `torpor-container start` (see main.c). */
struct order {
    const char *folder, *name, *owner, *image, *pull;
    long pull_seconds, launch_ms;
    bool says_ready;
    char **arguments;
};

/* Prepares the environment for podman: stores NOTIFY_SOCKET and LISTEN_FDS, and removes variables that podman
   itself would act on. */
void prepare_environment(void);

/* Writes the variables whose names begin with TORPOR_INSIDE_ into a file for podman's --env-file, without that
   prefix. Removes them from the environment. */
void write_variables(const char *path);

/* Sets NOTIFY_SOCKET again, for the program that will replace this process. */
void restore_environment(void);

/* Closes the descriptors that torpord has passed for the container. The container has its own copies now. */
void leave_to_container(void);

int start_container(const struct order *order);

/* Whether this is a folder of the user that this process runs as, so that the user has written what is in it. */
bool is_ours(const char *folder);

/* Paths and first lines of files in a folder. `place` returns false if the path is too long (PATH_MAX),
   `read_line` if the file or the line is missing. */
bool place(char *path, const char *folder, const char *name);
bool read_line(const char *folder, const char *name, char *text, size_t size);
void write_line(const char *folder, const char *name, const char *text);
void delete(const char *folder, const char *name);

/* note_run records in the folder that podman is about to start the container, and which network namespaces existed
   before. forget_run removes that record once the container runs. */
void note_run(const char *folder, const char *name);
void forget_run(const char *folder);

/* Removes what a `podman run` left behind that note_run has recorded and that did not complete. Returns false on
   failure. */
bool undo_run(const char *folder);

/* Removes the network namespaces that a killed rootless `podman run` made. Called inside of podman's user and mount
   namespaces. Returns false if their folder is not known. */
bool remove_rootless_network(const char *folder);

/* Deletes the rules of nftables that netavark made for the published ports of a container with these addresses. */
void delete_nftables_rules(char addresses[][ADDRESS_SIZE], int count);

/* The name of the folder for the temporary files of a pull begins with this. */
#define PULL_PREFIX "torpor-pull-"

/* Removes the folder with the temporary files of an interrupted pull. */
void remove_pulled(const char *folder);

/* Deletes the container with this ID or name. */
bool remove_by_id(const char *id);

/* Whether podman has only files, but no record, of a container with this name. That happens when podman is killed
   while it creates the container. */
bool is_external(const char *name);

/* Deletes the container whose ID is in the folder. Returns true if the container no longer exists. */
bool remove_container(const char *folder);

/* Blocks signals until this process reads them, and makes this process the parent of orphaned descendants, such as
   conmon, which podman leaves running. */
void take_signals(void);

/* Restores the original signal mask, for a child of this process. */
void leave_signals(void);

/* The descriptor that is readable when signals have arrived. */
int signals(void);

/* Reads the signals that have arrived, and stores them to be passed on later. */
void note_signals(void);

/* The number of a stored signal that asks this process to end; 0 if there is none. */
int is_asked_to_end(void);

/* Replaces this process by a new image of the same program, which takes little memory and has a short command
   line: `follow NAME CONMON FIRST WAITING MESSAGE`. The new image sends the message and follows the container.
   `first` is a pidfd of the first process inside the container, or -1. */
int follow_anew(const char *name, pid_t conmon, int first, const char *message);
int follow_words(char **words);

/* Sends a message to the app's notify socket. Does nothing if there is none. */
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a sentence to standard error and into the app's status. Returns FAILED. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A command line under construction. If memory runs out while a word is added, the process exits. */
struct words {
    char **all;
    size_t count, room;
};

/* Begins a command line of podman, to which `add` and `addf` add words. */
void begin(struct words *words);
void add(struct words *words, const char *word);
void addf(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What happens to the output of a command. */
enum output {
    OUTPUT_KEPT,      /* standard output is read into `answer`, standard error is discarded */
    OUTPUT_FOLLOWED,  /* standard error is passed on, and its last line is stored in `answer` */
    OUTPUT_PASSED     /* both are passed on to this process's standard output and standard error */
};

/* Runs `podman`, or the program that is the first word. Returns its exit status; 128 plus the number of the signal
   that ended it; -1 if it cannot be started or took longer than `seconds` (0: no limit). `answer` always ends with
   NUL. With OUTPUT_FOLLOWED, `line` is called with each line, and from time to time with NULL. */
int podman(struct words *words, enum output output, char *answer, size_t size, long seconds, void (*line)(const char *));

#endif
