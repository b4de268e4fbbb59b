// SPDX-License-Identifier: Apache-2.0

#include "host.h"

#include <malloc.h>

int main(void)
{
    // A single thread needs only one heap.
    mallopt(M_ARENA_MAX, 1);
    struct host_load load;
    size_t size;
    const void *message = host_receive(&size);
    host_load_read(message, size, &load);
    host_view_map(load.view_size);
    uint32_t confined = host_confine_first(&load);
    host_library_open(&load);
    confined = host_confine_second(confined);
    host_library_start(&load, confined);
    host_load_free(&load);
    malloc_trim(0);
    host_serve(load.advice_limit);
}
