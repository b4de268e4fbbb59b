// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// Messages to torpord. The keeper never waits until torpord has read them. If the socket has no room, an answer to a
// request goes into a buffer, and the keeper reads no further request until the answer is sent. A change of a slot is
// then noted in the slot, and sent when there is room.

static struct {
    _Alignas(8) char bytes[TORPOR_KEEPER_REPLY_LIMIT];
    size_t size;  // 0: no answer waits
    int fds[TORPOR_KEEPER_DESCRIPTORS];
    unsigned count;
} answer;

static KEEPER_TABLE uint32_t queue[TORPOR_KEEPER_SLOTS];
static uint32_t queue_first, queue_count;
static uint32_t version;  // of the protocol that torpord speaks
static bool end_of_table;
static uint32_t told_table;
static uint64_t orphan_told;
static uint32_t interest = EPOLLIN;

static void want(uint32_t events)
{
    if (events == interest || torpord_socket < 0)
        return;
    struct epoll_event wanted = {.events = events, .data.u64 = (uint64_t)EVENT_SOCKET << 32 | torpord_instance};
    if (epoll_ctl(keeper_epoll, EPOLL_CTL_MOD, torpord_socket, &wanted) == 0)
        interest = events;
}

void wire_setup(void)
{
    keeper_keep_from_children(queue, sizeof queue);
}

void wire_reset(void)
{
    answer.size = 0;
    for (; queue_count > 0; queue_count--) {
        table_processes[queue[queue_first]].queued = false;
        queue_first = (queue_first + 1) % TORPOR_KEEPER_SLOTS;
    }
    for (uint32_t slot = 0; slot < table_used; slot++)
        table_processes[slot].tell = 0;
    end_of_table = false;
    told_table = 0;
    interest = EPOLLIN;
}

// Returns false if the socket has no room now. If torpord has ended, messages are dropped.
static bool send_message(const void *bytes, size_t size, const int *fds, unsigned count)
{
    if (torpord_socket < 0 || torpord_pid == 0)
        return true;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * TORPOR_KEEPER_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        memset(&control, 0, CMSG_SPACE(sizeof(int) * count));
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    }
    watch_arm();
    for (;;) {
        if (sendmsg(torpord_socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return true;
        if (errno == EINTR)
            continue;
        // These errors pass, so the message must be sent again later (ETOOMANYREFS: too many descriptors are in
        // flight). After any other error torpord has ended, and the message counts as sent.
        return errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM && errno != ETOOMANYREFS;
    }
}

bool wire_can_answer(void)
{
    return answer.size == 0;
}

void wire_answer(const void *message, size_t size, const int *fds, unsigned count)
{
    if (answer.size != 0 || send_message(message, size, fds, count))
        return;
    memcpy(answer.bytes, message, size);
    answer.size = size;
    if (count > 0)
        memcpy(answer.fds, fds, sizeof(int) * count);
    answer.count = count;
}

void wire_answer_number(uint32_t type, uint32_t id, uint32_t value)
{
    struct torpor_keeper_number message = {{type, id}, value};
    wire_answer(&message, sizeof message, NULL, 0);
}

void wire_tell(uint32_t slot, unsigned what)
{
    struct keeper_process *process = &table_processes[slot];
    if (!torpord_greeted)
        return;  // after its HELLO the next torpord is sent everything
    process->tell |= (uint8_t)what;
    if (process->queued)
        return;
    process->queued = true;
    queue[(queue_first + queue_count++) % TORPOR_KEEPER_SLOTS] = slot;
}

void wire_tell_everything(uint32_t spoken)
{
    version = spoken;
    for (uint32_t slot = 0; slot < table_used; slot++) {
        struct torpor_keeper_slot *record = &table_slots[slot];
        if (table_processes[slot].abandoned)
            continue;
        if (record->state == TORPOR_SLOT_LAUNCHING || record->state == TORPOR_SLOT_RUNNING
            || record->state == TORPOR_SLOT_FAILED)  // not reaped yet: its end is sent when it is
            wire_tell(slot, TELL_TABLE);
        else if (record->state == TORPOR_SLOT_EXITED)
            wire_tell(slot, TELL_EXITED);
    }
    orphan_told = table->orphan_freed;
    end_of_table = true;
    told_table = 0;
}

static bool tell_record(uint32_t slot, uint32_t type, uint32_t id, bool with_pidfd)
{
    struct torpor_keeper_record message = {{type, id}, slot, 0, table_slots[slot]};
    unsigned count = with_pidfd && table_processes[slot].pidfd >= 0 ? 1 : 0;
    return send_message(&message, sizeof message, &table_processes[slot].pidfd, count);
}

static bool tell_slot(uint32_t slot)
{
    struct keeper_process *process = &table_processes[slot];
    struct torpor_keeper_slot *record = &table_slots[slot];
    if (process->tell & TELL_TABLE) {
        // The record sent below shows the current state. If an earlier torpord requested the launch (its number is 0
        // then), a separate message about it is not needed.
        process->tell &= (uint8_t)~(process->launch_id == 0 ? TELL_LAUNCHED : 0);
        if (!tell_record(slot, TORPOR_KEEPER_TABLE, 0, true))
            return false;
        process->tell &= (uint8_t)~TELL_TABLE;
        told_table++;
    }
    if (process->tell & TELL_LAUNCHED) {
        if (!tell_record(slot, TORPOR_KEEPER_LAUNCHED, process->launch_id, true))
            return false;
        process->tell &= (uint8_t)~TELL_LAUNCHED;
    }
    if (process->tell & TELL_FAILED) {
        struct torpor_keeper_failure message = {
            {TORPOR_KEEPER_LAUNCH_FAILED, process->launch_id}, record->stage, record->error};
        if (!send_message(&message, sizeof message, NULL, 0))
            return false;
        process->tell &= (uint8_t)~TELL_FAILED;
        if (record->state == TORPOR_SLOT_FAILED)  // the child was reaped: the slot is no longer needed
            table_free_slot(slot);
    }
    if (process->tell & TELL_EXITED) {
        if (!tell_record(slot, TORPOR_KEEPER_EXITED, 0, false))
            return false;
        process->tell &= (uint8_t)~TELL_EXITED;
    }
    return true;
}

// Sends the records of the table, many in a message, since torpord would sleep until the next of a thousand messages
// comes, again and again. Returns false if the socket has no room.
static bool tell_table(void)
{
    enum { RECORDS = sizeof answer.bytes / sizeof(struct torpor_keeper_record) };
    _Static_assert((int)RECORDS <= (int)TORPOR_KEEPER_DESCRIPTORS, "each record may have a descriptor");
    uint32_t slots[RECORDS];
    int fds[RECORDS];
    for (uint32_t at = 0; at < queue_count;) {
        unsigned count = 0, fd_count = 0;
        for (; at < queue_count && count < RECORDS; at++) {
            uint32_t slot = queue[(queue_first + at) % TORPOR_KEEPER_SLOTS];
            if (!(table_processes[slot].tell & TELL_TABLE))
                continue;
            struct torpor_keeper_record record = {{TORPOR_KEEPER_TABLE, 0}, slot, 0, table_slots[slot]};
            if (table_processes[slot].pidfd >= 0) {
                record.descriptors = 1;
                fds[fd_count++] = table_processes[slot].pidfd;
            }
            memcpy(answer.bytes + count * sizeof record, &record, sizeof record);  // no answer waits
            slots[count++] = slot;
        }
        if (count > 0 && !send_message(answer.bytes, count * sizeof(struct torpor_keeper_record), fds, fd_count))
            return false;
        for (unsigned i = 0; i < count; i++) {
            // As in tell_slot: the record shows the current state.
            struct keeper_process *process = &table_processes[slots[i]];
            process->tell &= (uint8_t)~(TELL_TABLE | (process->launch_id == 0 ? TELL_LAUNCHED : 0));
        }
        told_table += count;
    }
    return true;
}

// Sends the messages that wait. Returns false if the socket has no room.
static bool flush(void)
{
    if (answer.size != 0) {
        if (!send_message(answer.bytes, answer.size, answer.fds, answer.count))
            return false;
        answer.size = 0;
    }
    if (end_of_table && version >= 4 && !tell_table())
        return false;
    while (queue_count > 0) {
        uint32_t slot = queue[queue_first];
        if (!tell_slot(slot))
            return false;
        table_processes[slot].queued = false;
        queue_first = (queue_first + 1) % TORPOR_KEEPER_SLOTS;
        queue_count--;
    }
    if (!torpord_greeted)
        return true;
    if (end_of_table) {
        struct torpor_keeper_number message = {{TORPOR_KEEPER_TABLE_END, 0}, told_table};
        if (!send_message(&message, sizeof message, NULL, 0))
            return false;
        end_of_table = false;
    }
    if (orphan_told < table->orphan_freed)
        orphan_told = table->orphan_freed;
    while (orphan_told + 1 < table->orphan_next) {
        struct torpor_keeper_orphan_message message = {
            {TORPOR_KEEPER_ORPHAN, 0}, table_orphans[(orphan_told + 1) % TORPOR_KEEPER_ORPHANS]};
        if (!send_message(&message, sizeof message, NULL, 0))
            return false;
        orphan_told++;
    }
    return true;
}

void wire_flush(void)
{
    if (torpord_socket < 0)
        return;
    bool done = flush();
    want((answer.size == 0 ? EPOLLIN : 0) | (done ? 0 : EPOLLOUT));
}
