// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

// A start runs through most of the program; waiting needs little of it. What is used again is mapped again from the page
// cache. What is left stays in memory: when memory is short, apps are still launched, reaped and ended. Children inherit
// none of that (mlockall(2)), and what the tables have room for takes no memory until it is touched.

static int release(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    (void)context;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0)
            continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t end = (start + segment->p_filesz) & ~(page - 1);
        start = (start + page - 1) & ~(page - 1);
        if (start < end)
            madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

static void lock(void)
{
    struct rlimit limit, none;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return;
    // With a bound, mappings beyond it would be refused; with one of nothing, only those may who have none.
    none = limit;
    none.rlim_cur = 0;
    if (limit.rlim_cur != RLIM_INFINITY && setrlimit(RLIMIT_MEMLOCK, &none) < 0)
        return;
    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    if (limit.rlim_cur != RLIM_INFINITY)
        setrlimit(RLIMIT_MEMLOCK, &limit);
}

void rest(void)
{
    munlockall();
    dl_iterate_phdr(release, NULL);
    lock();
}
