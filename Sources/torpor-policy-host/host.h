/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_POLICY_HOST_H
#define TORPOR_POLICY_HOST_H

// One policy in a process of its own, kept from doing harm. torpor_policy_wire.h says how it is started and spoken to.
//
//   main.c      the order of things
//   wire.c      messages in and out, and how the host ends
//   load.c      what is to be loaded
//   view.c      the view
//   confine.c   user, capabilities, limits, descriptors; both layers of what follows
//   landlock.c  files
//   seccomp.c   system calls
//   folders.c   where the libraries lie that a library needs
//   elf.c       what a library says about itself before it is opened
//   library.c   opens it, looks at its table, makes the policy
//   ask.c       asks it
//
// Until the library is open nothing of it has run, but its bytes are read: they are believed no more than a message is.

#include "torpor_policy_wire.h"

#include <stdbool.h>

#define HOST_MESSAGE_ROOM (TORPOR_POLICY_WIRE_LIMIT + 8)  // a message that is too long shows

// What is to be loaded. Strings and options are good until host_load_free.
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

// The next message, 8-byte aligned, good until the next call; ends the host when there is none.
const torpor_policy_wire_header *host_receive(size_t *size);
// Sends, waiting for room; ends the host when nobody is there.
void host_send(const void *message, size_t size);
// Says why the library is not used, and ends the host.
_Noreturn void host_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Ends the host because of a message that is wrong.
_Noreturn void host_give_up(const char *what);
// What is done before the host ends because nobody asks any more.
extern void (*host_at_end)(void);

// load.c

void host_load_read(const void *message, size_t size, struct host_load *load);
void host_load_free(struct host_load *load);

// view.c

void host_view_map(uint64_t size);
// The view as it is now; ends the host when what its memory says of itself cannot be.
void host_view_look(torpor_policy_view *view);

// confine.c

// Before the library is opened. Returns TORPOR_CONFINED_….
uint32_t host_confine_first(const struct host_load *load);
// Before the policy is made; of `confined` what holds then too.
uint32_t host_confine_second(uint32_t confined);

// landlock.c

// Both rulesets are made while files can be opened. False: this kernel has no Landlock.
bool host_landlock_prepare(const char *path);
bool host_landlock_first(void);
bool host_landlock_second(void);
// For folders.c: lets the first ruleset read that file.
void host_landlock_allow_file(int fd);

// seccomp.c

bool host_seccomp_first(void);
bool host_seccomp_second(void);

// folders.c

// Calls host_landlock_allow_file with each library in the folders that the library names.
void host_folders_allow(const char *path);

// elf.c

// Refuses what is no library, or none for this machine.
void host_elf_check(const char *path);
// Its DT_RUNPATH, else its DT_RPATH; false if it has none that fits.
bool host_elf_runpath(char *text, size_t size);

// library.c

// How the library is opened: looked up while the user's rights can still be seen.
void host_library_locate(const struct host_load *load);
void host_library_open(const struct host_load *load);
// Makes the policy and says LOADED.
void host_library_start(const struct host_load *load, uint32_t confined);
extern const torpor_policy *host_policy;
extern void *host_policy_state;

// ask.c

// Answers questions until nobody asks any more.
_Noreturn void host_serve(uint32_t advice_limit);

#endif
