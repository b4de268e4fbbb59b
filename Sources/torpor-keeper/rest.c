// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

// A start touches most of the program, waiting only little of it. Dropped pages page in again from the page cache
// when used. The rest is locked, so that apps can be launched, reaped and terminated even when memory is short.
// Children do not inherit the locks (mlockall(2)), and unused table entries take no memory until they are touched.

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
    // With a limit, mappings beyond it would fail. With a limit of 0, mlockall succeeds only if no limit applies to
    // the process.
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
