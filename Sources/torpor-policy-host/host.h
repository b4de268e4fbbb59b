/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_POLICY_HOST_H
#define TORPOR_POLICY_HOST_H

// One policy in a process of its own, sandboxed. torpor_policy_wire.h describes how it is started and its protocol.
//
//   main.c      the sequence of steps
//   wire.c      messages in and out, and how the host ends
//   load.c      parses the LOAD message
//   view.c      the view
//   confine.c   user, capabilities, limits, descriptors; installs both layers of landlock.c and seccomp.c
//   landlock.c  files
//   seccomp.c   system calls
//   folders.c   the folders of the libraries that a library needs
//   elf.c       reads the library's ELF headers before it is opened
//   library.c   opens the library, checks its table, creates the policy
//   ask.c       asks the policy
//
// Before the library is open none of its code has run, but its bytes are read: they are as untrusted as a message.

#include "torpor_policy_wire.h"

#include <stdbool.h>

#define HOST_MESSAGE_ROOM (TORPOR_POLICY_WIRE_LIMIT + 8)  // larger than any message, to detect one that is too long

// The content of LOAD. Strings and options are valid until host_load_free.
struct host_load {
    const char *path;
    torpor_policy_option *options;
    uint32_t option_count;
    uint64_t address_space;
    uint32_t user;
    uint32_t group;
    uint64_t view_size;
    uint32_t advice_limit;
    char *text;
};

// wire.c

// Waits for the next message. It is 8-byte aligned, and valid until the next call. Ends the host if the connection is
// closed.
const torpor_policy_wire_header *host_receive(size_t *size);
// Sends a message, waiting for room; ends the host if the parent is gone.
void host_send(const void *message, size_t size);
// Reports why the library is not used, and ends the host.
_Noreturn void host_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Ends the host because of an invalid message.
_Noreturn void host_give_up(const char *what);
// Called before the host ends because the parent is gone.
extern void (*host_at_end)(void);

// load.c

void host_load_read(const void *message, size_t size, struct host_load *load);
void host_load_free(struct host_load *load);

// view.c

void host_view_map(uint64_t size);
// The current view; ends the host if the sizes in its memory are invalid.
void host_view_look(torpor_policy_view *view);

// confine.c

// Confinement before the library is opened. Returns TORPOR_CONFINED_….
uint32_t host_confine_first(const struct host_load *load);
// Confinement before the policy is created. Returns those bits of `confined` that still hold.
uint32_t host_confine_second(uint32_t confined);

// landlock.c

// Creates both rulesets while files can still be opened. False: this kernel has no Landlock.
bool host_landlock_prepare(const char *path);
bool host_landlock_first(void);
bool host_landlock_second(void);
// Lets the first ruleset read this file. Only folders.c calls it.
void host_landlock_allow_file(int fd);

// seccomp.c

bool host_seccomp_first(void);
bool host_seccomp_second(void);

// folders.c

// Calls host_landlock_allow_file with each library in the folders that the library names.
void host_folders_allow(const char *path);

// elf.c

// Refuses a file that is not a library, or not one for this machine.
void host_elf_check(const char *path);
// The library's DT_RUNPATH, else its DT_RPATH; false if it has none, or one that is too long.
bool host_elf_runpath(char *text, size_t size);

// library.c

// Decides how to open the library: must be called before the confinement, while files can be checked.
void host_library_locate(const struct host_load *load);
void host_library_open(const struct host_load *load);
// Creates the policy and sends LOADED.
void host_library_start(const struct host_load *load, uint32_t confined);
extern const torpor_policy *host_policy;
extern void *host_policy_state;

// ask.c

// Answers questions until the parent is gone.
_Noreturn void host_serve(uint32_t advice_limit);

#endif
