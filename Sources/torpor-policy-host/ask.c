// SPDX-License-Identifier: Apache-2.0

#include "host.h"

#include <string.h>
#include <unistd.h>

// The current question, and the part of its advice that was not sent yet.
static struct {
    uint64_t serial;
    uint32_t event;
    uint32_t limit;
    uint32_t given;   // pieces of advice to this question so far
    bool flooded;
    size_t used;      // bytes of the current message so far
    uint32_t entries; // pieces of advice in the message so far
} answer;

// The buffer for an answer that fits into one message: torpor_policy_wire_answered, then the advice.
static _Alignas(8) unsigned char message_room[TORPOR_POLICY_WIRE_LIMIT];

// Sends the advice so far, to make room for more.
static void send_advice(void)
{
    torpor_policy_wire_header header = {
        .type = TORPOR_POLICY_ADVICE, .count = answer.entries, .serial = answer.serial};
    size_t skipped = sizeof(torpor_policy_wire_answered) - sizeof header;
    memcpy(message_room + skipped, &header, sizeof header);
    host_send(message_room + skipped, answer.used - skipped);
    answer.used = sizeof(torpor_policy_wire_answered);
    answer.entries = 0;
}

static int32_t advise(const torpor_policy_reply *reply, const torpor_policy_advice *advice)
{
    (void)reply;
    if (answer.given >= answer.limit) {
        answer.flooded = true;
        return -1;
    }
    torpor_policy_wire_advice wire = {
        .event = answer.event,
        .kind = TORPOR_POLICY_HAS(advice, kind) ? advice->kind : 0,
        .app = TORPOR_POLICY_HAS(advice, app) ? advice->app : TORPOR_NO_APP,
        .value = TORPOR_POLICY_HAS(advice, value) ? advice->value : 0,
        .time = TORPOR_POLICY_HAS(advice, time) ? advice->time : 0,
    };
    const char *reason = TORPOR_POLICY_HAS(advice, reason) ? advice->reason : NULL;
    if (reason != NULL)
        wire.reason_bytes = (uint32_t)strnlen(reason, TORPOR_POLICY_REASON_LIMIT);
    size_t padded = (wire.reason_bytes + 7u) & ~(size_t)7;
    if (answer.used + sizeof wire + padded > sizeof message_room)
        send_advice();
    unsigned char *at = message_room + answer.used;
    memcpy(at, &wire, sizeof wire);
    if (padded != 0) {
        memset(at + sizeof wire + padded - 8, 0, 8);
        memcpy(at + sizeof wire, reason, wire.reason_bytes);
    }
    answer.used += sizeof wire + padded;
    answer.entries += 1;
    answer.given += 1;
    return 0;
}

static void take_question(const torpor_policy_wire_header *message, size_t size)
{
    torpor_policy_wire_ask ask;
    if (message->type != TORPOR_POLICY_ASK || size < sizeof ask)
        host_give_up("a message that is no question");
    memcpy(&ask, message, sizeof ask);
    if (ask.header.count == 0 || ask.header.count > TORPOR_POLICY_EVENT_LIMIT || ask.event_size % 8 != 0
        || ask.event_size < sizeof(torpor_policy_event) || size != sizeof ask + (size_t)ask.header.count * ask.event_size)
        host_give_up("a question of another size than it says");
    torpor_policy_view view;
    host_view_look(&view);
    answer.serial = ask.header.serial;
    answer.given = 0;
    answer.flooded = false;
    answer.used = sizeof(torpor_policy_wire_answered);
    answer.entries = 0;
    torpor_policy_reply reply = {.size = sizeof reply, .context = &answer, .advise = advise};
    uint64_t decided = 0;
    for (uint32_t i = 0; i < ask.header.count && !answer.flooded; i++) {
        const char *bytes = (const char *)message + sizeof ask + (size_t)i * ask.event_size;
        const torpor_policy_event *event = (const void *)bytes;
        if (event->size > ask.event_size)
            host_give_up("an event of another size than it says");
        answer.event = i;
        if (host_policy->decide(host_policy_state, &view, event, &reply) == TORPOR_DECIDED)
            decided |= (uint64_t)1 << i;
    }
    torpor_policy_wire_answered last = {
        .header = {.type = TORPOR_POLICY_ANSWERED, .count = answer.entries, .serial = answer.serial},
        .decided = decided,
        .advice_count = answer.given,
        .flooded = answer.flooded,
    };
    memcpy(message_room, &last, sizeof last);
    host_send(message_room, answer.used);
}

static void destroy(void)
{
    if (TORPOR_POLICY_HAS(host_policy, destroy) && host_policy->destroy != NULL)
        host_policy->destroy(host_policy_state);
}

void host_serve(uint32_t advice_limit)
{
    answer.limit = advice_limit;
    host_at_end = destroy;
    while (true) {
        size_t size;
        const torpor_policy_wire_header *message = host_receive(&size);
        take_question(message, size);
    }
}
