// SPDX-License-Identifier: Apache-2.0

#include "host.h"

#include <stdlib.h>
#include <string.h>

// The text at `*at`, which is then moved to the byte after the text; NULL if there is no NUL.
static const char *take_text(char **at, const char *end)
{
    char *text = *at;
    char *nul = memchr(text, 0, (size_t)(end - text));
    if (nul == NULL)
        return NULL;
    *at = nul + 1;
    return text;
}

static void take_option(char **at, const char *end, torpor_policy_option *option)
{
    torpor_policy_wire_option wire;
    if ((size_t)(end - *at) < sizeof wire)
        host_give_up("LOAD ends within an option");
    memcpy(&wire, *at, sizeof wire);
    *at += sizeof wire;
    option->size = sizeof *option;
    option->type = wire.type;
    option->integer = wire.integer;
    option->number = wire.number;
    option->key = take_text(at, end);
    option->text = option->key == NULL ? NULL : take_text(at, end);
    if (option->text == NULL)
        host_give_up("LOAD ends within an option's text");
}

void host_load_read(const void *message, size_t size, struct host_load *load)
{
    torpor_policy_wire_load wire;
    if (size < sizeof wire)
        host_give_up("the first message is no LOAD");
    memcpy(&wire, message, sizeof wire);
    if (wire.header.type != TORPOR_POLICY_LOAD || wire.header.serial != 0)
        host_give_up("the first message is no LOAD");
    if (wire.version != TORPOR_POLICY_WIRE_VERSION || wire.flags != 0)
        host_refuse("this torpor-policy-host speaks version %u of the wire, and who started it version %u: install both "
                    "from one Torpor",
                    TORPOR_POLICY_WIRE_VERSION, wire.version);
    if (wire.header.count > TORPOR_POLICY_OPTION_LIMIT || wire.advice_limit == 0)
        host_give_up("LOAD has too many options, or allows no advice");

    // Copy the message, because the next message overwrites its buffer.
    size_t rest = size - sizeof wire;
    memset(load, 0, sizeof *load);
    load->text = malloc(rest + 1);
    load->options = calloc(wire.header.count + 1, sizeof *load->options);
    if (load->text == NULL || load->options == NULL)
        host_refuse("there is no memory for the options of the policy");
    memcpy(load->text, (const char *)message + sizeof wire, rest);
    char *at = load->text;
    const char *end = load->text + rest;
    load->path = take_text(&at, end);
    if (load->path == NULL || load->path[0] != '/')
        host_give_up("LOAD has no path that begins with /");
    load->option_count = wire.header.count;
    for (uint32_t i = 0; i < load->option_count; i++)
        take_option(&at, end, &load->options[i]);
    if (at != end)
        host_give_up("LOAD has extra bytes after its end");
    load->address_space = wire.address_space;
    load->user = wire.user;
    load->group = wire.group;
    load->view_size = wire.view_size;
    load->advice_limit = wire.advice_limit;
}

void host_load_free(struct host_load *load)
{
    free(load->options);
    free(load->text);
    load->options = NULL;
    load->text = NULL;
    load->path = NULL;
}
