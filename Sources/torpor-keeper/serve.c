// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// Messages from torpord. No message may harm the keeper: sizes and counts are checked, and unknown messages are
// refused.

enum { MESSAGES_A_TURN = 64 };

static union {
    struct torpor_keeper_header header;
    struct torpor_keeper_number number;
    struct torpor_keeper_slot_free slot_free;
    struct torpor_keeper_orphan_free orphan_free;
    struct torpor_keeper_adopt adopt;
    struct torpor_keeper_pair pair;
    char bytes[256 * 1024 + 1];  // the last byte is always NUL
} received;

static int received_fds[TORPOR_KEEPER_DESCRIPTORS];
static unsigned received_count;

static void close_received(void)
{
    // The message was refused, so it is unknown who created its descriptors. Descriptors that came with HOLD may be an
    // app's, and closing them may block.
    bool is_foreign = received.header.type == TORPOR_KEEPER_HOLD;
    uint32_t owner = is_foreign ? closer_owner(received.bytes + sizeof received.number) : 0;
    for (unsigned i = 0; i < received_count; i++)
        if (is_foreign)
            closer_take(received_fds[i], owner);
        else
            close(received_fds[i]);
    received_count = 0;
}

// The name at `offset`, if it fills the rest of the message, is not empty, and contains no NUL except at its end.
static const char *name_at(size_t offset, size_t size)
{
    if (size <= offset + 1 || size - offset > TORPOR_KEEPER_NAME_BYTES)
        return NULL;
    const char *name = received.bytes + offset;
    return strlen(name) == size - offset - 1 ? name : NULL;
}

// Returns the newest protocol version that this keeper offers. In tests, the keeper pretends to know only the oldest
// version as long as the file that an environment variable names exists.
static uint32_t newest_version(void)
{
    const char *old = getenv("TORPOR_KEEPER_TEST_OLD");
    return old != NULL && access(old, F_OK) == 0 ? TORPOR_KEEPER_OLDEST_VERSION : TORPOR_KEEPER_PROTOCOL_VERSION;
}

static void serve_hello(size_t size)
{
    uint32_t version = received.number.value;
    if (size != sizeof received.number || version < TORPOR_KEEPER_OLDEST_VERSION
        || version > newest_version()) {
        wire_answer_number(TORPOR_KEEPER_REFUSED, received.header.id, size == sizeof received.number ? EPROTO : EINVAL);
        return;
    }
    torpord_said_hello();
    struct torpor_keeper_welcome welcome = {
        .header = {TORPOR_KEEPER_WELCOME, received.header.id},
        .version = version,
        .instance = torpord_instance,
        .watch_milliseconds = watch_milliseconds,
        .under_manager = manager_present,
        .app_nofile_soft = keeper_nofile_soft,
        .keeper_pid = (int32_t)getpid(),
        .started_from_image = image_is_fallback(),
        .resume_version = TORPOR_KEEPER_RESUME_VERSION,
        .features = TORPOR_KEEPER_FILES | TORPOR_KEEPER_WALLS,
    };
    int fds[2] = {table_memfd, watch_fd};
    wire_answer(&welcome, sizeof welcome, fds, 2);
    wire_tell_everything(version);
}

static void serve_slot_free(size_t size)
{
    uint32_t slot = received.slot_free.slot;
    if (size != sizeof received.slot_free || slot >= table_used)
        return;
    if (table_slots[slot].state == TORPOR_SLOT_EXITED && table_slots[slot].generation == received.slot_free.generation)
        table_free_slot(slot);
}

static void serve_orphan_free(size_t size)
{
    uint64_t sequence = received.orphan_free.sequence;
    if (size == sizeof received.orphan_free && sequence < table->orphan_next && sequence > table->orphan_freed)
        table->orphan_freed = sequence;
}

static void serve_hold(size_t size, bool truncated)
{
    const char *name = name_at(sizeof received.number, size);
    int error = EINVAL;
    if (name != NULL && truncated)
        error = EMFILE;
    else if (name != NULL && received_count > 0) {
        for (unsigned i = 0; i < received_count; i++)
            received_fds[i] = spawn_raise(received_fds[i]);
        error = hold_add(name, received_fds, received_count, received.number.value & TORPOR_HOLD_REPLACE);
    }
    if (error == 0)
        received_count = 0;  // the table of held descriptors owns them now
    if (error == 0 && (received.number.value & TORPOR_HOLD_QUIET))
        return;
    wire_answer_number(TORPOR_KEEPER_DONE, received.header.id, (uint32_t)error);
}

static void serve_adopt(size_t size, bool truncated)
{
    const char *app = name_at(sizeof received.adopt, size);
    if (received_count == 1)
        received_fds[0] = spawn_raise(received_fds[0]);
    int error = app == NULL || received_count > 1 ? EINVAL : truncated || received_count == 0 ? EMFILE
                : adopt_request(&received.adopt, app, received_fds[0]);
    if (error == 0)
        received_count = 0;
    wire_answer_number(TORPOR_KEEPER_DONE, received.header.id, (uint32_t)error);
}

static void serve_take(size_t size)
{
    struct torpor_keeper_pair taken = {{TORPOR_KEEPER_TAKEN, received.header.id}, EINVAL, 0};
    int fds[TORPOR_KEEPER_DESCRIPTORS];
    unsigned count = 0;
    const char *name = name_at(sizeof received.number, size);
    if (name != NULL)
        taken.first = (uint32_t)hold_take(name, received.number.value, fds, TORPOR_KEEPER_DESCRIPTORS, &taken.second,
                                          &count);
    wire_answer(&taken, sizeof taken, fds, count);
}

static char reply[TORPOR_KEEPER_REPLY_LIMIT];

static void serve_take_all(size_t size)
{
    int fds[TORPOR_KEEPER_DESCRIPTORS];
    unsigned count;
    if (size != sizeof received.pair) {
        wire_answer_number(TORPOR_KEEPER_REFUSED, received.header.id, EINVAL);
        return;
    }
    struct torpor_keeper_held head = {
        {TORPOR_KEEPER_HELD, received.header.id}, received.pair.first, received.pair.second, 0};
    size_t used = hold_take_all(&head, reply + sizeof head, sizeof reply - sizeof head, fds, &count);
    memcpy(reply, &head, sizeof head);
    wire_answer(reply, sizeof head + used, fds, count);
}

static void serve_list(size_t size)
{
    if (size != sizeof received.number) {
        wire_answer_number(TORPOR_KEEPER_REFUSED, received.header.id, EINVAL);
        return;
    }
    struct torpor_keeper_pair head = {{TORPOR_KEEPER_NAMES, received.header.id}, received.number.value, 0};
    size_t used = hold_list(&head.first, reply + sizeof head, sizeof reply - sizeof head, &head.second);
    memcpy(reply, &head, sizeof head);
    wire_answer(reply, sizeof head + used, NULL, 0);
}

static void serve_bye(size_t size)
{
    uint32_t flags = size >= sizeof received.number ? received.number.value : 0;
    bool has_status = size >= sizeof received.pair && (flags & TORPOR_BYE_STATUS);
    torpord_said_bye(flags & TORPOR_BYE_KEEP_PARKED, has_status ? (int)(received.pair.second & 0xff) : -1);
}

static void serve_message(size_t size, bool truncated)
{
    if (size < sizeof received.header)
        return;
    received.bytes[size] = 0;
    switch (received.header.type) {
    case TORPOR_KEEPER_HELLO:
        serve_hello(size);
        return;
    case TORPOR_KEEPER_BYE:
        serve_bye(size);
        return;
    case TORPOR_KEEPER_LAUNCH:
        if (torpord_pid == 0 || !torpord_greeted) {
            wire_answer_number(TORPOR_KEEPER_REFUSED, received.header.id, EPROTO);
        } else if (truncated) {
            struct torpor_keeper_failure message = {
                {TORPOR_KEEPER_LAUNCH_FAILED, received.header.id}, TORPOR_STAGE_PLAN, EMFILE};
            wire_answer(&message, sizeof message, NULL, 0);
        } else {
            if (launch_request(received.bytes, size, received_fds, received_count))
                received_count = 0;
        }
        return;
    case TORPOR_KEEPER_SETTLED:
        torpord_said_settled();
        return;
    case TORPOR_KEEPER_HANDOVER:
        if (size == sizeof received.number)
            torpord_said_handover(received.number.value & TORPOR_HANDOVER_KEEPER);
        return;
    case TORPOR_KEEPER_SLOT_FREE:
        serve_slot_free(size);
        return;
    case TORPOR_KEEPER_ORPHAN_FREE:
        serve_orphan_free(size);
        return;
    case TORPOR_KEEPER_HOLD:
        serve_hold(size, truncated);
        return;
    case TORPOR_KEEPER_RELEASE: {
        const char *name = name_at(sizeof received.header, size);
        wire_answer_number(TORPOR_KEEPER_DONE, received.header.id,
                           (uint32_t)(name == NULL ? EINVAL : hold_release(name)));
        return;
    }
    case TORPOR_KEEPER_TAKE:
        serve_take(size);
        return;
    case TORPOR_KEEPER_LIST:
        serve_list(size);
        return;
    case TORPOR_KEEPER_TAKE_ALL:
        serve_take_all(size);
        return;
    case TORPOR_KEEPER_ADOPT:
        serve_adopt(size, truncated);
        return;
    case TORPOR_KEEPER_MANAGER:
        manager_tell(received.bytes + sizeof received.header, size - sizeof received.header);
        return;
    case TORPOR_KEEPER_REST:
        rest_soon();
        return;
    default:
        wire_answer_number(TORPOR_KEEPER_REFUSED, received.header.id, EOPNOTSUPP);
    }
}

// Returns false if there is nothing more to read.
static bool read_message(void)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * TORPOR_KEEPER_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = received.bytes, .iov_len = sizeof received.bytes - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t size;
    do
        size = recvmsg(torpord_socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size < 0 || (size == 0 && message.msg_controllen == 0))
        return false;  // an empty datagram looks like the end; torpord sends none
    received_count = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head != NULL; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && received_count < TORPOR_KEEPER_DESCRIPTORS; i++)
            memcpy(&received_fds[received_count++], CMSG_DATA(head) + i * sizeof(int), sizeof(int));
    }
    if (message.msg_flags & MSG_TRUNC)
        wire_answer_number(TORPOR_KEEPER_REFUSED, received.header.id, EMSGSIZE);
    else
        serve_message((size_t)size, (message.msg_flags & MSG_CTRUNC) != 0);
    close_received();
    return true;
}

void serve_socket(uint32_t events)
{
    if (torpord_socket < 0)
        return;
    for (int i = 0; i < MESSAGES_A_TURN && wire_can_answer(); i++)
        if (!read_message()) {
            if (events & (EPOLLHUP | EPOLLERR)) {
                // torpord has closed its end and is about to exit. Unwatch the socket, or epoll would report it
                // forever.
                struct epoll_event none = {.events = 0};
                epoll_ctl(keeper_epoll, EPOLL_CTL_DEL, torpord_socket, &none);
                torpord_closed();
            }
            return;
        }
}

void serve_rest(void)
{
    if (torpord_socket >= 0)
        while (read_message())
            continue;
}
