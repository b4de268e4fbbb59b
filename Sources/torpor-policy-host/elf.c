// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "host.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SEGMENTS = 128, MOST_ENTRIES = 512 };

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#error "torpor-policy-host knows the system calls of x86_64 and aarch64"
#endif

static const char *machine_name(unsigned machine, char *room, size_t size)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        {EM_386, "i386"},       {EM_ARM, "32-bit ARM"}, {EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"},
        {EM_PPC64, "ppc64"},    {EM_S390, "s390x"},     {EM_RISCV, "riscv64"}, {EM_MIPS, "mips"},
        {258, "loongarch64"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].machine == machine)
            return names[i].name;
    snprintf(room, size, "another machine (e_machine %u)", machine);
    return room;
}

static bool read_at(void *to, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX - size && pread(TORPOR_POLICY_HOST_LIBRARY, to, size, (off_t)offset) == (ssize_t)size;
}

void host_elf_check(const char *path)
{
    struct stat status;
    if (fstat(TORPOR_POLICY_HOST_LIBRARY, &status) < 0)
        host_give_up("there is no library to load: it is started by torpord and by torpor policy");
    Elf64_Ehdr header;
    if (!S_ISREG(status.st_mode) || !read_at(&header, sizeof header, 0)
        || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        host_refuse("%s is not a library: it does not begin as ELF files do; build the policy as a shared library", path);
    char own[64], other[64];
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB
        || header.e_machine != OWN_MACHINE) {
        unsigned machine = header.e_ident[EI_DATA] == ELFDATA2MSB ? __builtin_bswap16(header.e_machine)
                                                                  : header.e_machine;
        host_refuse("%s is a%s library for %s, and this machine is %s: build the policy for %s", path,
                    header.e_ident[EI_CLASS] == ELFCLASS32 ? " 32-bit" : "",
                    machine_name(machine, other, sizeof other), machine_name(OWN_MACHINE, own, sizeof own),
                    machine_name(OWN_MACHINE, own, sizeof own));
    }
    if (header.e_type != ET_DYN)
        host_refuse("%s is an ELF file, but not a library: build the policy as a shared library", path);
}

// The offset in the file of a virtual address.
static bool find_offset(const Elf64_Phdr *segments, unsigned count, uint64_t address, uint64_t *offset)
{
    for (unsigned i = 0; i < count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr
            && address - segment->p_vaddr < segment->p_filesz) {
            *offset = segment->p_offset + (address - segment->p_vaddr);
            return true;
        }
    }
    return false;
}

bool host_elf_runpath(char *text, size_t size)
{
    Elf64_Ehdr header;
    Elf64_Phdr segments[MOST_SEGMENTS];
    if (!read_at(&header, sizeof header, 0) || header.e_phentsize != sizeof segments[0]
        || header.e_phnum > MOST_SEGMENTS || !read_at(segments, header.e_phnum * sizeof segments[0], header.e_phoff))
        return false;
    bool has_strings = false, has_runpath = false, has_rpath = false;
    uint64_t strings = 0, runpath = 0, rpath = 0;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        if (segments[i].p_type != PT_DYNAMIC)
            continue;
        for (unsigned n = 0; n < MOST_ENTRIES; n++) {
            Elf64_Dyn entry;
            if (!read_at(&entry, sizeof entry, segments[i].p_offset + n * sizeof entry) || entry.d_tag == DT_NULL)
                break;
            if (entry.d_tag == DT_STRTAB) {
                strings = entry.d_un.d_ptr;
                has_strings = true;
            } else if (entry.d_tag == DT_RUNPATH) {
                runpath = entry.d_un.d_val;
                has_runpath = true;
            } else if (entry.d_tag == DT_RPATH) {
                rpath = entry.d_un.d_val;
                has_rpath = true;
            }
        }
    }
    uint64_t offset;
    if (!has_strings || !(has_runpath || has_rpath) || !find_offset(segments, header.e_phnum, strings, &offset))
        return false;
    // Read up to `size` bytes, although the string may be shorter and the file may end after it: a NUL in the bytes
    // that were read shows that the string is complete.
    offset += has_runpath ? runpath : rpath;
    if (offset > INT64_MAX)
        return false;
    ssize_t got = pread(TORPOR_POLICY_HOST_LIBRARY, text, size, (off_t)offset);
    return got > 0 && memchr(text, 0, (size_t)got) != NULL;
}
