// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

// Frees memory when the keeper is idle. Its start touches most of the program, of which little is needed later. Pages
// that are dropped are read again from the page cache when used. The remaining pages are locked, so that the keeper
// can launch, reap and terminate apps even when memory is short. Children do not inherit the locks (mlockall(2)), and
// unused table entries take no memory until they are touched.

// Read in advance: sysconf(3) is far from the rest of what runs here, and would bring pages back.
static uintptr_t page;

static int release(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0)
            continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t end = (start + segment->p_filesz) & ~(page - 1);
        start = (start + page - 1) & ~(page - 1);
        if (start < end)
            madvise((void *)start, end - start, *(int *)context);
    }
    return 0;
}

static void lock(void)
{
    struct rlimit limit, none;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return;
    // If a limit on locked memory applies, later mappings beyond that limit would fail, so lock only if none applies. A
    // limit of 0 shows this: with it, mlockall succeeds only for a process to which no limit applies.
    none = limit;
    none.rlim_cur = 0;
    if (limit.rlim_cur != RLIM_INFINITY && setrlimit(RLIMIT_MEMLOCK, &none) < 0)
        return;
    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    if (limit.rlim_cur != RLIM_INFINITY)
        setrlimit(RLIMIT_MEMLOCK, &limit);
}

static bool is_due;

void rest_soon(void) { is_due = true; }

void rest_if_due(void)
{
    if (!is_due)
        return;
    is_due = false;
    page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int unlocked = MADV_DONTNEED, locked = MADV_DONTNEED_LOCKED;
    munlockall();
    dl_iterate_phdr(release, &unlocked);
    lock();
    // What has run since, as of Linux 5.18.
    dl_iterate_phdr(release, &locked);
}
