/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_BASE_H
#define TORPOR_KEEPER_BASE_H

// Helpers that every part of the keeper uses; they depend on no other part.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum keeper_event {
    EVENT_SIGNAL,
    EVENT_SOCKET,   // with torpord's instance: a late event may belong to an earlier instance
    EVENT_WATCH,    // torpord's event loop missed its deadline; with the instance
    EVENT_DELAY,    // time to restart torpord, to kill a stuck one, or to end a shutdown
    EVENT_MANAGER,  // time to send WATCHDOG=1 to the service manager
    EVENT_MANAGER_RETRY,
    EVENT_EXEC,     // a launch's pipe is readable or closed; with the slot's index
    EVENT_ADOPTED,  // an adopted process has ended or was reaped by its parent; with the slot's index
    EVENT_ADOPT_PATIENCE,
};

extern int keeper_epoll;
extern char **keeper_environment;
// Logs one line. The format may start with a priority of sd-daemon(3), such as "<6>"; the default is "<4>", warning.
void keeper_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool keeper_watch_descriptor(int fd, uint32_t events, enum keeper_event event, uint32_t index);
void keeper_close_watched(int fd);
uint64_t keeper_now_milliseconds(void);
void keeper_take_milliseconds(const char *variable, uint32_t *value);
void keeper_note_ignored(void);  // signals that were ignored when the keeper started
void keeper_reset_signals(void);
// Puts a table on pages of its own, so that a fork need not copy it. Copying memory is most of a fork's cost.
#define KEEPER_TABLE __attribute__((aligned(4096)))
void keeper_keep_from_children(void *table, size_t size);
extern uint64_t keeper_nofile_soft;
extern uint64_t keeper_nofile_hard;

#endif
