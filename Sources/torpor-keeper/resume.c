// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// The keeper replaces its program by exec: its process, children and descriptors stay. Its private state goes into a
// memfd (torpor_keeper_resume.h); the slots already are in one. Blocked signals stay pending across exec, but SIGCHLD
// may be lost: so the new program first reaps everything that has ended.

static char program[PATH_MAX];

// Other descriptors that the keeper inherited stay open: the program that started the keeper may detect the keeper's
// exit by their end-of-file.
static int inherited[TORPOR_KEEPER_RESUME_INHERITED];

void resume_remember_inherited(void)
{
    uint32_t count = 0;
    for (int fd = 3 + hold_offered(); fd < 1024 && count < TORPOR_KEEPER_RESUME_INHERITED; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            inherited[count++] = fd;
    while (count < TORPOR_KEEPER_RESUME_INHERITED)
        inherited[count++] = -1;
}

bool resume_remember_program(void)
{
    // If the file was replaced, use the new file at the same path.
    static const char deleted[] = " (deleted)";
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    if (size <= 0)
        return false;
    program[size] = 0;
    size_t length = strlen(program), end = sizeof deleted - 1;
    if (length > end && strcmp(program + length - end, deleted) == 0)
        program[length - end] = 0;
    return true;
}

int resume_accepts(const char *text)
{
    char *end;
    unsigned long version = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == 0 && version >= 1 && version <= TORPOR_KEEPER_RESUME_VERSION)
        return 0;
    keeper_log("cannot resume from a keeper's state of version %s: this program reads 1 to %u", text,
               TORPOR_KEEPER_RESUME_VERSION);
    return 1;
}

// Writing

static struct {
    int fd;
    bool failed;
    size_t used;
    uint64_t total;
    char bytes[16384];
} out;

static void drain(void)
{
    size_t done = 0;
    while (done < out.used && !out.failed) {
        ssize_t size = write(out.fd, out.bytes + done, out.used - done);
        if (size >= 0)
            done += (size_t)size;
        else if (errno != EINTR)
            out.failed = true;
    }
    out.used = 0;
}

static void put(const void *from, size_t size)
{
    out.total += size;
    while (size > 0) {
        size_t part = size < sizeof out.bytes - out.used ? size : sizeof out.bytes - out.used;
        memcpy(out.bytes + out.used, from, part);
        out.used += part;
        from = (const char *)from + part;
        size -= part;
        if (out.used == sizeof out.bytes)
            drain();
    }
}

static uint32_t names_put;

static void put_name(struct hold_name *name)
{
    struct torpor_keeper_resume_name head = {
        name->count, (uint32_t)strlen(name->text), park_offset(name), name->parked, name->remove};
    put(&head, sizeof head);
    put(name->text, head.length);
    for (uint32_t link = name->first; link != 0; link = hold_entries[link - 1].next)
        put(&hold_entries[link - 1].fd, sizeof(int));
    names_put++;
}

static void put_texts(void)
{
    for (uint32_t i = 0; i < manager_text_count(); i++) {
        uint32_t size;
        const char *text = manager_text(i, &size);
        put(&size, sizeof size);
        put(text, size);
    }
}

static int write_state(void)
{
    struct torpor_keeper_resume state;
    memset(&state, 0, sizeof state);
    out.fd = memfd_create("torpor-resume", MFD_CLOEXEC);
    if (out.fd < 0)
        return -1;
    out.failed = false;
    out.used = 0;
    out.total = 0;
    state.magic = TORPOR_KEEPER_RESUME_MAGIC;
    state.version = TORPOR_KEEPER_RESUME_VERSION;
    state.head_bytes = sizeof state;
    state.writer = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    state.instance = torpord_instance;
    state.table = table_memfd;
    state.slot_count = table_used;
    state.slot_bytes = sizeof *table_slots;
    state.orphan_count = TORPOR_KEEPER_ORPHANS;
    state.orphan_bytes = sizeof *table_orphans;
    state.process_bytes = sizeof(struct torpor_keeper_resume_process);
    state.text_count = manager_text_count();
    state.app_nofile_soft = keeper_nofile_soft;
    state.app_nofile_hard = keeper_nofile_hard;
    state.next_delay = torpord_next_delay();
    state.pending_signals = forward_pending();
    memcpy(state.inherited, inherited, sizeof inherited);
    image_save(&state);
    put(&state, sizeof state);
    for (uint32_t slot = 0; slot < table_used; slot++) {
        struct keeper_process *process = &table_processes[slot];
        bool used = table_slots[slot].state != TORPOR_SLOT_FREE;
        struct torpor_keeper_resume_process one = {
            used ? process->pidfd : -1, used ? process->exec_pipe : -1, process->reaped, process->abandoned};
        put(&one, sizeof one);
    }
    names_put = 0;
    hold_each_name(put_name);
    put_texts();
    drain();
    state.name_count = names_put;
    state.total_bytes = out.total;
    if (out.failed || pwrite(out.fd, &state, sizeof state, 0) != sizeof state || lseek(out.fd, 0, SEEK_SET) < 0) {
        int error = errno;
        close(out.fd);
        if (state.writer >= 0)
            close(state.writer);
        errno = error;
        return -1;
    }
    return out.fd;
}

static int passing;

static void set_passing(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, passing ? 0 : FD_CLOEXEC);
}

static void set_passing_name(struct hold_name *name)
{
    for (uint32_t link = name->first; link != 0; link = hold_entries[link - 1].next)
        set_passing(hold_entries[link - 1].fd);
}

// Makes the descriptors in the state survive exec, or reverts that after a failed exec.
static void pass(int state_fd, bool on)
{
    struct torpor_keeper_resume state;
    passing = on;
    if (pread(state_fd, &state, sizeof state, 0) != sizeof state)
        return;
    set_passing(state_fd);
    set_passing(state.writer);
    set_passing(state.table);
    for (uint32_t i = 0; i < TORPOR_KEEPER_RESUME_INHERITED; i++)
        set_passing(state.inherited[i]);
    if (state.flags & TORPOR_RESUME_IMAGE)
        set_passing(state.image);
    for (uint32_t slot = 0; slot < table_used; slot++)
        if (table_slots[slot].state != TORPOR_SLOT_FREE) {
            set_passing(table_processes[slot].pidfd);
            set_passing(table_processes[slot].exec_pipe);
        }
    hold_each_name(set_passing_name);
    if (!on) {
        if (state.writer >= 0)
            close(state.writer);
        close(state_fd);
    }
}

void resume_execute(void)
{
    size_t count = 0;
    while (torpord_arguments[count] != NULL)
        count++;
    char **arguments = calloc(count + 4, sizeof *arguments);
    int fd = arguments == NULL ? -1 : write_state();
    if (fd < 0) {
        keeper_log("cannot save its state, so it is not replaced: %s", strerror(errno));
        free(arguments);
        return;
    }
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    arguments[0] = program;
    arguments[1] = "--resume";
    arguments[2] = number;
    memcpy(arguments + 3, torpord_arguments, sizeof *arguments * count);
    closer_leave(false);
    pass(fd, true);
    execve(program, arguments, keeper_environment);
    keeper_log("could not run %s again, so it is not replaced: %s", program, strerror(errno));
    pass(fd, false);
    free(arguments);
}

// Reading

struct input {
    const char *next;
    const char *end;
};

static const void *get(struct input *input, size_t size)
{
    if ((size_t)(input->end - input->next) < size)
        return NULL;
    const void *here = input->next;
    input->next += size;
    return here;
}

static const char *wrong_with(const struct torpor_keeper_resume *state, uint64_t size)
{
    if (state->slot_count > TORPOR_KEEPER_SLOTS || state->name_count > TORPOR_KEEPER_NAME_COUNT
        || state->orphan_count > TORPOR_KEEPER_ORPHANS)
        return "it has more entries than fit here";
    if (state->slot_count > 0
        && (state->slot_bytes != sizeof *table_slots || state->orphan_bytes != sizeof *table_orphans
            || state->process_bytes != sizeof(struct torpor_keeper_resume_process)))
        return "its records have a different size";
    return state->total_bytes != size || state->head_bytes != sizeof *state ? "it is damaged" : NULL;
}

static bool read_table(const struct torpor_keeper_resume *state)
{
    struct stat status;
    if (state->table < 0)
        return state->slot_count == 0;
    if (fstat(state->table, &status) < 0 || (size_t)status.st_size < sizeof *table)
        return false;
    size_t size = (size_t)status.st_size;
    const char *base = mmap(NULL, size, PROT_READ, MAP_SHARED, state->table, 0);
    if (base == MAP_FAILED)
        return false;
    const struct torpor_keeper_table *old = (const struct torpor_keeper_table *)base;
    size_t slots = sizeof *table_slots * state->slot_count, orphans = sizeof *table_orphans * state->orphan_count;
    bool whole = old->magic == TORPOR_KEEPER_MAGIC && old->slot_offset <= size && slots <= size - old->slot_offset
                 && old->orphan_offset <= size && orphans <= size - old->orphan_offset
                 && state->orphan_count == TORPOR_KEEPER_ORPHANS;
    if (whole) {
        memcpy(table_slots, base + old->slot_offset, slots);
        memcpy(table_orphans, base + old->orphan_offset, orphans);
        table->orphan_next = old->orphan_next;
        table->orphan_freed = old->orphan_freed;
        table->orphan_lost = old->orphan_lost;
        table->launches = old->launches;
    }
    munmap((void *)base, size);
    close(state->table);
    return whole;
}

static bool read_processes(const struct torpor_keeper_resume *state, struct input *input)
{
    for (uint32_t slot = 0; slot < state->slot_count; slot++) {
        const struct torpor_keeper_resume_process *one = get(input, sizeof *one);
        if (one == NULL)
            return false;
        table_restore_slot(slot, one);
    }
    return true;
}

static bool read_names(const struct torpor_keeper_resume *state, struct input *input)
{
    for (uint32_t i = 0; i < state->name_count; i++) {
        struct torpor_keeper_resume_name head;
        char name[TORPOR_KEEPER_NAME_BYTES];
        const void *from = get(input, sizeof head);
        if (from == NULL)
            return false;
        memcpy(&head, from, sizeof head);
        const char *text = head.length < sizeof name ? get(input, head.length) : NULL;
        if (text == NULL)
            return false;
        memcpy(name, text, head.length);
        name[head.length] = 0;
        for (uint32_t k = 0; k < head.count; k++) {
            int fd;
            if ((from = get(input, sizeof fd)) == NULL)
                return false;
            memcpy(&fd, from, sizeof fd);
            int error = fcntl(fd, F_GETFD) < 0 ? EBADF : hold_add(name, &fd, 1, false);
            if (error != 0)
                keeper_log("descriptor %d (%s) is lost: %s", fd, name, strerror(error));
        }
        struct hold_name *entry = head.count > 0 || head.remove > 0 ? hold_name_for(name) : NULL;
        if (entry != NULL)
            park_restore(entry, &head);
    }
    return true;
}

static bool read_texts(const struct torpor_keeper_resume *state, struct input *input)
{
    for (uint32_t i = 0; i < state->text_count; i++) {
        uint32_t size;
        const void *from = get(input, sizeof size);
        if (from == NULL)
            return false;
        memcpy(&size, from, sizeof size);
        if ((from = get(input, size)) == NULL)
            return false;
        manager_tell(from, size);
    }
    return true;
}

static struct torpor_keeper_resume resumed;
static const char *resumed_base;
static size_t resumed_size;

bool resume_open(const char *number, char **arguments)
{
    struct stat status;
    char *end;
    const char *wrong = "it is damaged";
    int fd = (int)strtol(number, &end, 10);
    size_t size = *end != 0 || fstat(fd, &status) < 0 || status.st_size < 16 ? 0 : (size_t)status.st_size;
    const char *base = size == 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (base == MAP_FAILED) {
        keeper_log("--resume %s: there is no keeper's state; this is for keepers only, run torpord instead", number);
        return false;
    }
    memset(&resumed, 0, sizeof resumed);
    memcpy(&resumed, base, size < sizeof resumed ? size : sizeof resumed);
    bool known = resumed.magic == TORPOR_KEEPER_RESUME_MAGIC;
    if (known && resumed.version != TORPOR_KEEPER_RESUME_VERSION) {
        keeper_log("cannot resume from a keeper's state of version %u: this program reads version %u", resumed.version,
                   TORPOR_KEEPER_RESUME_VERSION);
    } else if (known && size >= sizeof resumed && (wrong = wrong_with(&resumed, size)) == NULL) {
        resumed_base = base;
        resumed_size = size;
        close(fd);
        return true;
    } else {
        keeper_log("cannot resume from the last keeper's state: %s", wrong);
    }
    munmap((void *)base, size);
    if (known && resumed.writer >= 0 && strcmp(arguments[1], "--resume") == 0) {
        keeper_log("<6>the previous keeper continues");
        arguments[1] = "--resume-back";
        syscall(SYS_execveat, resumed.writer, "", arguments, keeper_environment, AT_EMPTY_PATH);
        keeper_log("could not run it: %s", strerror(errno));
    }
    return false;
}

void resume_restore(void)
{
    struct input input = {resumed_base + sizeof resumed, resumed_base + resumed_size};
    if (!read_table(&resumed) || !read_processes(&resumed, &input) || !read_names(&resumed, &input)
        || !read_texts(&resumed, &input))
        keeper_log("<3>the last keeper's state is damaged: some of it is lost");
    if (resumed.app_nofile_soft != 0) {
        keeper_nofile_soft = resumed.app_nofile_soft;
        keeper_nofile_hard = resumed.app_nofile_hard;
    }
    torpord_resume(resumed.instance, resumed.next_delay);
    forward_restore(resumed.pending_signals);
    memcpy(inherited, resumed.inherited, sizeof inherited);
    image_restore(&resumed);
    if (resumed.writer >= 0)
        close(resumed.writer);
    munmap((void *)resumed_base, resumed_size);
}
