// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "test_app.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/// What a decoy writes down. The reader is Tests/Integration/Operations/Chaos/Decoys.swift.
struct decoy {
    char magic[8];
    uint64_t pid;
    uint64_t received;      // how many signals came
    uint64_t first_signal;  // number of the first
    uint64_t first_sender;  // si_pid of the first
    uint64_t failure;       // errno when a wanted pid could not be had
};

static struct decoy *record;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (record->received == 0) {
        record->first_signal = (uint64_t)number;
        record->first_sender = (uint64_t)info->si_pid;
    }
    record->received++;
}

_Noreturn static void stand(const char *name)
{
    setsid();
    prctl(PR_SET_NAME, name);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&action.sa_mask);
    for (int number = 1; number < 65; number++)
        if (number != SIGKILL && number != SIGSTOP)
            sigaction(number, &action, NULL);
    record->pid = (uint64_t)getpid();
    __sync_synchronize();
    memcpy(record->magic, "CHDECOY1", 8);
    for (;;)
        pause();
}

/// With a wanted pid a child is made that has it (as root, clone3 can ask for one that is free): a stranger where an
/// app of ours was. Exits with 0 then, with 1 when the number is taken or this is not allowed.
int decoy_main(const char *file, const char *name, int wanted_pid)
{
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, sizeof *record) < 0)
        return 2;
    record = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (wanted_pid <= 0)
        stand(name);
    pid_t wanted[1] = {wanted_pid};
    struct clone_args arguments;
    memset(&arguments, 0, sizeof arguments);
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = (uint64_t)(uintptr_t)wanted;
    arguments.set_tid_size = 1;
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        stand(name);
    if (child < 0) {
        record->failure = (uint64_t)errno;
        return 1;
    }
    return 0;
}
