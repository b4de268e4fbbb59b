// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A loaded library is mapped from its file: if a program writes to that file, as cp(1) does, the library's code changes
// while it runs. So its pages are replaced by copies.

struct detaching {
    const struct link_map *library;
    int result;
};

struct range {
    uintptr_t start, end;
};

static uintptr_t down(uintptr_t address) { return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1); }

static uintptr_t up(uintptr_t address) { return down(address + (uintptr_t)sysconf(_SC_PAGESIZE) - 1); }

// Replaces pages that are only read by anonymous ones with the same content.
static int copy_pages(struct range pages, int protection)
{
    size_t size = pages.end - pages.start;
    if (pages.start >= pages.end)
        return 0;
    void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return -1;
    memcpy(copy, (const void *)pages.start, size);
    if (mprotect(copy, size, protection) == 0
        && mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)pages.start) != MAP_FAILED)
        return 0;
    int error = errno;
    munmap(copy, size);
    errno = error;
    return -1;
}

// The mapping of writable pages is private: each page that is written to becomes a copy.
static void touch(struct range pages)
{
    for (uintptr_t page = pages.start; page < pages.end; page += (uintptr_t)sysconf(_SC_PAGESIZE))
        __atomic_fetch_or((char *)page, 0, __ATOMIC_RELAXED);
}

static int detach(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct detaching *one = context;
    if (info->dlpi_addr != one->library->l_addr || strcmp(info->dlpi_name, one->library->l_name) != 0)
        return 0;
    // The part of the writable pages that is write-protected after relocation.
    struct range fixed = {0, 0};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO)
            fixed = (struct range){down(start), down(start + part->p_memsz)};
    }
    one->result = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_R) == 0 || part->p_filesz == 0)
            continue;
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        struct range pages = {down(start), up(start + part->p_filesz)};
        if ((part->p_flags & PF_W) == 0) {
            if (copy_pages(pages, PROT_READ | (part->p_flags & PF_X ? PROT_EXEC : 0)) < 0)
                one->result = -1;
            continue;
        }
        if (fixed.start >= pages.start && fixed.start < fixed.end && fixed.start < pages.end) {
            struct range within = {fixed.start, fixed.end < pages.end ? fixed.end : pages.end};
            if (copy_pages(within, PROT_READ) < 0)
                one->result = -1;
            touch((struct range){pages.start, within.start});
            pages.start = within.end;
        }
        touch(pages);
    }
    return 1;
}

int tlx_detach_library(void *handle)
{
    struct link_map *library = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) {
        errno = EINVAL;
        return -1;
    }
    struct detaching one = {.library = library, .result = -1};
    errno = ENOENT;
    dl_iterate_phdr(detach, &one);
    return one.result;
}
