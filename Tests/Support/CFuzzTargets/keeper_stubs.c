// SPDX-License-Identifier: Apache-2.0

// What the keeper's parsers call that is none of them: nothing here has an effect, and no process comes to be.
#include "../../../Sources/torpor-keeper/hold.h"

#include "keeper_stubs.h"

#include <errno.h>
#include <stdlib.h>

pid_t torpord_pid = 1;
int torpord_socket = -1;
bool torpord_greeted = true;
uint32_t torpord_instance = 1;
int keeper_epoll = -1;
uint64_t keeper_nofile_soft, keeper_nofile_hard;
bool manager_present;
uint32_t watch_milliseconds;
int watch_fd = -1;

const int *cfuzz_descriptors(void)
{
    static int all[TORPOR_KEEPER_DESCRIPTORS];
    for (unsigned i = 0; i < TORPOR_KEEPER_DESCRIPTORS; i++)
        all[i] = (1 << 28) + (int)i;
    return all;
}

void keeper_log(const char *format, ...)
{
    (void)format;
}

bool keeper_watch_descriptor(int fd, uint32_t events, enum keeper_event event, uint32_t index)
{
    (void)fd, (void)events, (void)event, (void)index;
    return false;  // so that a launch ends before it forks
}

void keeper_close_watched(int fd)
{
    extern int close(int);
    close(fd);
}

void keeper_keep_from_children(void *memory, size_t size)
{
    (void)memory, (void)size;
}

void torpord_said_hello(void) {}
void torpord_said_settled(void) {}

void torpord_said_bye(bool keep_parked, int status)
{
    (void)keep_parked, (void)status;
}

void torpord_said_handover(bool keeper_too)
{
    (void)keeper_too;
}

bool image_is_fallback(void)
{
    return false;
}

void wire_tell_everything(uint32_t spoken)
{
    (void)spoken;
}

void wire_tell(uint32_t slot, unsigned what)
{
    (void)slot, (void)what;
}

bool wire_can_answer(void)
{
    return true;
}

int spawn_raise(int fd)
{
    return fd;
}

pid_t spawn_child(struct keeper_spawn *spawn, const int *fds, unsigned count)
{
    (void)spawn, (void)fds, (void)count;
    errno = EAGAIN;
    return -1;
}

_Noreturn void child_run(struct keeper_plan *plan, const struct keeper_spawn *spawn, pid_t keeper)
{
    (void)plan, (void)spawn, (void)keeper;
    abort();
}

bool reap_stat(pid_t pid, uint64_t *start_time, int32_t *session, char comm[16])
{
    (void)pid, (void)start_time, (void)session, (void)comm;
    return false;
}

int adopt_request(const struct torpor_keeper_adopt *message, const char *app, int pidfd)
{
    (void)pidfd;
    return message->pid <= 0 || app[0] == 0 ? EINVAL : 0;
}

bool adopt_watch(uint32_t slot)
{
    (void)slot;
    return true;
}

void manager_tell(const char *text, size_t size)
{
    if (size > 0 && text[size - 1] == 1 && size > TORPOR_KEEPER_MANAGER_LIMIT)
        abort();
}

void rest_soon(void) {}

void torpord_closed(void) {}

// Descriptors here are numbers that stand for none.
void closer_take(int fd, uint32_t owner)
{
    (void)fd;
    (void)owner;
}

bool closer_is_stuck(uint32_t owner)
{
    (void)owner;
    return false;
}

uint32_t closer_owner(const char *name)
{
    (void)name;
    return 1;
}

// As park.c where there is no service manager.
void park(struct hold_name *name)
{
    if (name->count == 0)
        hold_free_name(name);
}

void park_has(struct hold_name *name, uint32_t number)
{
    (void)name, (void)number;
}
