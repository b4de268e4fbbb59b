// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *memory;
static size_t memory_size;

void host_view_map(uint64_t size)
{
    struct stat status;
    if (fstat(TORPOR_POLICY_HOST_VIEW, &status) < 0 || size < sizeof(torpor_policy_wire_view) || size > (1ull << 32)
        || status.st_size < 0 || size > (uint64_t)status.st_size)
        host_give_up("the view is shorter than LOAD says");
    void *start = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, TORPOR_POLICY_HOST_VIEW, 0);
    if (start == MAP_FAILED)
        host_refuse("the view cannot be mapped: %s", strerror(errno));
    close(TORPOR_POLICY_HOST_VIEW);
    // All policies and the supervisor share this memory, so no policy may be able to write to it.
    if (mprotect(start, (size_t)size, PROT_READ | PROT_WRITE) == 0)
        host_give_up("the view could be written to: it must be sealed (F_SEAL_FUTURE_WRITE) or opened for reading");
    memory = start;
    memory_size = (size_t)size;
}

static bool holds(uint64_t offset, uint64_t size)
{
    return offset <= memory_size && size <= memory_size - offset;
}

void host_view_look(torpor_policy_view *view)
{
    torpor_policy_wire_view wire;
    memcpy(&wire, memory, sizeof wire);
    if (wire.version != TORPOR_POLICY_WIRE_VERSION)
        host_give_up("the view has another version");
    if ((wire.system_offset | wire.apps_offset | wire.app_size) % 8 != 0
        || !holds(wire.system_offset, sizeof(uint32_t))
        || !holds(wire.apps_offset, (uint64_t)wire.app_count * wire.app_size)
        || !holds(wire.strings_offset, wire.string_size) || wire.string_size == 0
        || memory[wire.strings_offset + wire.string_size - 1] != 0)
        host_give_up("the view has an invalid header");
    const torpor_policy_system *system = (const void *)(memory + wire.system_offset);
    if (!holds(wire.system_offset, system->size))
        host_give_up("the view has an invalid header");
    view->size = sizeof *view;
    view->app_count = wire.app_count;
    view->app_size = wire.app_size;
    view->string_size = wire.string_size;
    view->system = system;
    view->apps = memory + wire.apps_offset;
    view->strings = memory + wire.strings_offset;
}
