// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper.h"
#include "torpor_keeper_protocol.h"

// The keeper, as torpord knows it: what the real one does in launch.c, reap.c, hold.c and wire.c, over the world's
// processes. It is not killed here.

enum { SLOTS = SIM_PROCESSES };

static struct {
    struct torpor_keeper_slot record;
    uint32_t launch_id;
    int is_abandoned, is_reaped;
} slots[SLOTS];

static int connection = -1, table = -1, timer = -1;
static int has_greeted;
static uint32_t instance;
static uint32_t slots_end;  // those from here on are free
static uint64_t launches;

void sim_send_to_torpord(const void *message, size_t size, const int *fds, uint32_t count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * TORPOR_KEEPER_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = (void *)message, .iov_len = size};
    struct msghdr to = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        memset(&control, 0, sizeof control);
        to.msg_control = control.bytes;
        to.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&to);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    }
    if (connection >= 0 && sendmsg(connection, &to, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        sim_note("the keeper cannot send: %s", strerror(errno));
}

void sim_answer_number(uint32_t type, uint32_t id, uint32_t value)
{
    struct torpor_keeper_number message = {{type, id}, value};
    sim_send_to_torpord(&message, sizeof message, NULL, 0);
}

static void send_record(uint32_t slot, uint32_t type, uint32_t id, int with_pidfd)
{
    struct torpor_keeper_record message = {{type, id}, slot, 0, slots[slot].record};
    char path[256];
    int pidfd = -1;
    if (with_pidfd) {
        snprintf(path, sizeof path, "%s/pidfd/%d", sim_world->root, slots[slot].record.pid);
        pidfd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    sim_send_to_torpord(&message, sizeof message, &pidfd, pidfd >= 0 ? 1 : 0);
    if (pidfd >= 0)
        close(pidfd);
}

int sim_keeper_begin(void)
{
    int pair[2], size = 1 << 20;
    if (table < 0) {
        table = memfd_create("torpor-table", MFD_CLOEXEC);
        timer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (ftruncate(table, 4096) < 0)
            return -1;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    connection = pair[0];
    has_greeted = 0;
    instance++;
    return pair[1];
}

void sim_keeper_torpord_ended(void)
{
    close(connection);
    connection = -1;
    has_greeted = 0;
    for (uint32_t slot = 0; slot < slots_end; slot++) {
        struct torpor_keeper_slot *record = &slots[slot].record;
        slots[slot].launch_id = 0;
        if (record->state == TORPOR_SLOT_FAILED && slots[slot].is_reaped)
            record->state = TORPOR_SLOT_EXITED;
        if (record->state == TORPOR_SLOT_FREE || !(record->flags & TORPOR_LAUNCH_HELPER))
            continue;
        if (record->state == TORPOR_SLOT_EXITED) {
            record->state = TORPOR_SLOT_FREE;
            continue;
        }
        slots[slot].is_abandoned = 1;
        struct sim_process *process = sim_find(record->pid);
        if (process != NULL)
            sim_send_signal(process, SIGKILL);
    }
}

static int slot_of(int32_t pid)
{
    for (int slot = 0; slot < (int)slots_end; slot++)
        if (slots[slot].record.pid == pid && !slots[slot].is_reaped && slots[slot].record.state != TORPOR_SLOT_FREE)
            return slot;
    return -1;
}

int sim_keeper_is_launching(int32_t pid)
{
    int slot = slot_of(pid);
    return slot >= 0 && slots[slot].record.state == TORPOR_SLOT_LAUNCHING;
}

void sim_keeper_exec(int32_t pid, uint32_t stage, uint32_t error)
{
    int slot = slot_of(pid);
    if (slot < 0 || slots[slot].record.state != TORPOR_SLOT_LAUNCHING)
        return;
    struct torpor_keeper_slot *record = &slots[slot].record;
    if (stage != TORPOR_STAGE_NONE) {
        record->stage = stage;
        record->error = error;
        record->state = TORPOR_SLOT_FAILED;
        return;
    }
    record->state = TORPOR_SLOT_RUNNING;
    if (has_greeted && !slots[slot].is_abandoned)
        send_record((uint32_t)slot, TORPOR_KEEPER_LAUNCHED, slots[slot].launch_id, 1);
}

void sim_keeper_exited(struct sim_process *process)
{
    int slot = slot_of(process->pid);
    if (slot >= 0) {
        struct torpor_keeper_slot *record = &slots[slot].record;
        if (record->state == TORPOR_SLOT_LAUNCHING)
            sim_keeper_exec(process->pid, TORPOR_STAGE_NONE, 0);
        record->code = process->code;
        record->status = process->status;
        record->user_microseconds = 1000;
        record->ended_microseconds = (uint64_t)(sim_world->now / 1000);
        slots[slot].is_reaped = 1;
        if (slots[slot].is_abandoned) {
            record->state = TORPOR_SLOT_FREE;
        } else if (record->state == TORPOR_SLOT_FAILED && slots[slot].launch_id != 0) {
            struct torpor_keeper_failure message = {
                {TORPOR_KEEPER_LAUNCH_FAILED, slots[slot].launch_id}, record->stage, record->error};
            sim_send_to_torpord(&message, sizeof message, NULL, 0);
            record->state = TORPOR_SLOT_FREE;
        } else {
            record->state = TORPOR_SLOT_EXITED;
            if (has_greeted)
                send_record((uint32_t)slot, TORPOR_KEEPER_EXITED, 0, 0);
        }
    }
    sim_reap(process);
}

// MARK: What torpord asks

static union {
    struct torpor_keeper_header header;
    struct torpor_keeper_number number;
    struct torpor_keeper_slot_free slot_free;
    struct torpor_keeper_pair pair;
    struct torpor_keeper_launch launch;
    char bytes[256 * 1024];
} got;
static int fds[TORPOR_KEEPER_DESCRIPTORS];
static uint32_t fd_count;

static void greet(void)
{
    struct torpor_keeper_welcome welcome = {
        .header = {TORPOR_KEEPER_WELCOME, got.header.id},
        .version = TORPOR_KEEPER_PROTOCOL_VERSION,
        .instance = instance,
        .app_nofile_soft = 1024,
        .keeper_pid = SIM_KEEPER,
        .resume_version = TORPOR_KEEPER_RESUME_VERSION,
        .features = TORPOR_KEEPER_FILES | TORPOR_KEEPER_WALLS,
    };
    int both[2] = {table, timer};
    has_greeted = 1;
    sim_send_to_torpord(&welcome, sizeof welcome, both, 2);
    uint32_t sent = 0;
    for (uint32_t slot = 0; slot < slots_end; slot++) {
        struct torpor_keeper_slot *record = &slots[slot].record;
        if (slots[slot].is_abandoned || record->state == TORPOR_SLOT_FREE)
            continue;
        if (record->state == TORPOR_SLOT_EXITED) {
            send_record(slot, TORPOR_KEEPER_EXITED, 0, 0);
        } else {
            send_record(slot, TORPOR_KEEPER_TABLE, 0, 1);
            sent++;
        }
    }
    sim_answer_number(TORPOR_KEEPER_TABLE_END, 0, sent);
}

static char *next_text(char **next, char *end)
{
    char *text = *next, *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    if (nul == NULL)
        abort();
    *next = nul + 1;
    return text;
}

static int take_descriptor(uint32_t *taken, uint32_t flags, uint32_t flag)
{
    return flags & flag && *taken < fd_count ? fds[(*taken)++] : -1;
}

static void launch(size_t size, struct sim_event *event)
{
    struct torpor_keeper_launch *head = &got.launch;
    char *next = got.bytes + sizeof *head, *end = got.bytes + size;
    next += head->limit_count * sizeof(struct torpor_keeper_limit) + head->group_count * sizeof(uint32_t);
    const char *app = next_text(&next, end), *executable = next_text(&next, end);
    next_text(&next, end);
    for (int i = 0; i < 2; i++)
        if (head->flags & (i == 0 ? TORPOR_LAUNCH_INPUT_FILE : TORPOR_LAUNCH_ERROR_FILE))
            next_text(&next, end);
    for (uint32_t i = 0; i < head->argument_count; i++)
        next_text(&next, end);
    uint32_t slot = 0;
    while (slot < SLOTS && slots[slot].record.state != TORPOR_SLOT_FREE)
        slot++;
    // Commands that outlive their torpord (OutlivingCommand.swift) are no helpers to the keeper, but do what helpers do.
    int is_helper = (head->flags & TORPOR_LAUNCH_HELPER) != 0 || head->incarnation >> 31 != 0;
    struct sim_process *process =
        slot == SLOTS ? NULL : sim_spawn(app, head->incarnation, SIM_KEEPER, is_helper);
    if (process == NULL) {
        struct torpor_keeper_failure message = {
            {TORPOR_KEEPER_LAUNCH_FAILED, got.header.id}, TORPOR_STAGE_SLOT, ENOSPC};
        sim_send_to_torpord(&message, sizeof message, NULL, 0);
        return;
    }
    for (uint32_t i = 0; i < head->environment_count; i++) {
        const char *entry = next_text(&next, end);
        size_t length = strlen(entry) + 1;
        if (process->environment_size + length > SIM_ENVIRONMENT)
            abort();
        memcpy(sim_environment(process) + process->environment_size, entry, length);
        process->environment_size += (uint32_t)length;
    }
    snprintf(process->comm, sizeof process->comm, "app");
    if (slot >= slots_end)
        slots_end = slot + 1;
    uint32_t generation = slots[slot].record.generation + 1;
    memset(&slots[slot], 0, sizeof slots[slot]);
    slots[slot].launch_id = got.header.id;
    struct torpor_keeper_slot *record = &slots[slot].record;
    record->state = TORPOR_SLOT_LAUNCHING;
    record->generation = generation;
    record->sequence = ++launches;
    record->pid = process->pid;
    record->incarnation = head->incarnation;
    record->start_time = process->start;
    record->flags = head->flags;
    snprintf(record->app, sizeof record->app, "%s", app);
    uint32_t taken = 0;
    event->kind = SIM_EVENT_LAUNCH;
    event->pid = process->pid;
    event->input = take_descriptor(&taken, head->flags, TORPOR_LAUNCH_STDIN);
    event->output = take_descriptor(&taken, head->flags, TORPOR_LAUNCH_STDOUT);
    event->error = take_descriptor(&taken, head->flags, TORPOR_LAUNCH_STDERR);
    event->passed_count = 0;
    for (uint32_t i = 0; i < head->passed_count && i < 16 && taken < fd_count; i++)
        event->passed[event->passed_count++] = fds[taken++];
    for (; taken < fd_count; taken++)
        close(fds[taken]);
    fd_count = 0;
    snprintf(event->executable, sizeof event->executable, "%s", executable);
    sim_note("the keeper launches %s as %d", app, process->pid);
}

static void serve(size_t size, struct sim_event *event)
{
    switch (got.header.type) {
    case TORPOR_KEEPER_HELLO:
        greet();
        return;
    case TORPOR_KEEPER_LAUNCH:
        launch(size, event);
        return;
    case TORPOR_KEEPER_SLOT_FREE: {
        uint32_t slot = got.slot_free.slot;
        if (slot < SLOTS && slots[slot].record.state == TORPOR_SLOT_EXITED
            && slots[slot].record.generation == got.slot_free.generation)
            slots[slot].record.state = TORPOR_SLOT_FREE;
        return;
    }
    case TORPOR_KEEPER_HOLD: {
        uint32_t error = sim_hold(got.bytes + sizeof got.number, got.number.value, fds, &fd_count);
        if (error != 0 || !(got.number.value & TORPOR_HOLD_QUIET))
            sim_answer_number(TORPOR_KEEPER_DONE, got.header.id, error);
        return;
    }
    case TORPOR_KEEPER_RELEASE: {
        uint32_t error = sim_release(got.bytes + sizeof got.header);
        sim_answer_number(TORPOR_KEEPER_DONE, got.header.id, error);
        return;
    }
    case TORPOR_KEEPER_TAKE:
        sim_take(got.header.id, got.bytes + sizeof got.number, got.number.value);
        return;
    case TORPOR_KEEPER_TAKE_ALL:
        sim_take_all(got.header.id, got.pair.first);
        return;
    case TORPOR_KEEPER_LIST:
        sim_list_held(got.header.id);
        return;
    case TORPOR_KEEPER_BYE:
        event->kind = SIM_EVENT_BYE;
        event->status = size >= sizeof got.pair && got.pair.first & TORPOR_BYE_STATUS ? (int)got.pair.second : -1;
        return;
    case TORPOR_KEEPER_HANDOVER:
        event->kind = SIM_EVENT_HANDOVER;
        return;
    case TORPOR_KEEPER_SETTLED:
        event->kind = SIM_EVENT_SETTLED;
        return;
    case TORPOR_KEEPER_ADOPT:
        sim_answer_number(TORPOR_KEEPER_DONE, got.header.id, ENOSPC);
        return;
    default:
        return;
    }
}

int sim_keeper_has_request(void)
{
    // Nothing was there when torpord had sent so many messages.
    static uint64_t nothing_at = UINT64_MAX;
    char byte;
    if (nothing_at == sim_world->messages)
        return 0;
    if (connection >= 0 && recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
        return 1;
    nothing_at = sim_world->messages;
    return 0;
}

int sim_keeper_turn(struct sim_event *event)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * TORPOR_KEEPER_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = got.bytes, .iov_len = sizeof got.bytes - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    event->kind = SIM_EVENT_NONE;
    ssize_t size = connection < 0 ? -1 : recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < (ssize_t)sizeof got.header)
        return 0;
    fd_count = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head != NULL; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(head), count * sizeof(int));
        fd_count = (uint32_t)count;
    }
    got.bytes[size] = 0;
    serve((size_t)size, event);
    for (uint32_t i = 0; i < fd_count; i++)
        close(fds[i]);
    return 1;
}

void sim_keeper_reset(void)
{
    sim_release_all();
    slots_end = 0;
    memset(slots, 0, sizeof slots);
    instance = 0;
}
