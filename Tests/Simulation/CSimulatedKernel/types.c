// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Swift makes types and conformances when they are first needed: a twentieth of a torpord's time, in each of them again.
// The compiler's symbols for them end in MD (a place where the type is kept) and Wl (a function that returns a conformance):
// https://github.com/swiftlang/swift/blob/main/docs/ABI/Mangling.rst
// Without a table of symbols nothing is made.

static int first_program(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

static int ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), last = strlen(end);
    return length > last && name[0] == '$' && strcmp(name + length - last, end) == 0;
}

static void make_all(const char *file)
{
    const ElfW(Ehdr) *head = (const void *)file;
    const ElfW(Shdr) *sections = (const void *)(file + head->e_shoff);
    uintptr_t base = 0;
    dl_iterate_phdr(first_program, &base);
    for (int i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const ElfW(Sym) *symbols = (const void *)(file + sections[i].sh_offset);
        const char *names = file + sections[sections[i].sh_link].sh_offset;
        size_t count = sections[i].sh_size / sizeof *symbols;
        void *(*make)(void *place) = NULL;
        for (size_t j = 0; j < count; j++)
            if (strcmp(names + symbols[j].st_name, "__swift_instantiateConcreteTypeFromMangledName") == 0)
                make = (__typeof__(make))(base + symbols[j].st_value);
        for (size_t j = 0; make != NULL && j < count; j++) {
            const char *name = names + symbols[j].st_name;
            if (symbols[j].st_size == sizeof(void *) && ends_in(name, "MD"))
                make((void *)(base + symbols[j].st_value));
            else if (ELF64_ST_TYPE(symbols[j].st_info) == STT_FUNC && ends_in(name, "Wl"))
                ((void *(*)(void))(base + symbols[j].st_value))();
        }
    }
}

void sim_warm_up_types(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0) {
        void *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            make_all(file);
            munmap(file, (size_t)status.st_size);
        }
    }
    close(fd);
}
