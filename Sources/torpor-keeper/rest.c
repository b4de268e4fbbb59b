#define _GNU_SOURCE
#include "keeper.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

// A start runs through most of the program; waiting needs little of it. What is used again is mapped again from the page
// cache.

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

void rest(void)
{
    dl_iterate_phdr(release, NULL);
}
