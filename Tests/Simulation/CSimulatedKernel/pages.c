// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Each torpord would fault in the pages of its code again: fork(2) copies no page tables of files that nothing has written
// to. So the code moves into huge pages of anonymous memory, for which fork copies an entry for each 2 MiB.
// https://docs.kernel.org/admin-guide/mm/transhuge.html

enum { HUGE_PAGE = 2 << 20, LEAST_CODE = 1 << 20 };

static int has_huge_pages(void)
{
    char text[64] = "";
    int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    return got > 0 && strstr(text, "[never]") == NULL;
}

static void move_code(uintptr_t begin, size_t size)
{
    char *space = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED)
        return;
    // At the same distance from a multiple of the size of a huge page.
    size_t before = (begin - (uintptr_t)space) % HUGE_PAGE;
    char *copy = space + before;
    madvise(copy, size, MADV_HUGEPAGE);
    memcpy(copy, (const void *)begin, size);
    if (mprotect(copy, size, PROT_READ | PROT_EXEC) == 0)
        mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin);
    munmap(space, before);
    munmap(copy + size, HUGE_PAGE - before);
}

static int move_code_of(struct dl_phdr_info *info, size_t info_size, void *unused)
{
    (void)info_size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || part->p_memsz < LEAST_CODE)
            continue;
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t begin = (info->dlpi_addr + part->p_vaddr) / page * page;
        uintptr_t end = (info->dlpi_addr + part->p_vaddr + part->p_memsz + page - 1) / page * page;
        move_code(begin, end - begin);
    }
    return 0;
}

void sim_move_code(void)
{
    if (has_huge_pages())
        dl_iterate_phdr(move_code_of, NULL);
}
