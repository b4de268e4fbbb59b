// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Restores the default actions of signals. Called in the child before exec, so that a signal between fork and exec does
// not run this program's handlers in the child.
static void reset_handlers(void)
{
    for (int signo = 1; signo < NSIG; signo++) {
        struct sigaction action;
        if (sigaction(signo, NULL, &action) == 0 && action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL)
            tlx_signal_disposition(signo, 0);
    }
}

// Waits until the child has closed the pipe by its exec, and returns the child's pid. If the child writes an errno to
// the pipe instead, returns -1 and sets this errno.
static pid_t await_exec(pid_t child, int report, int error)
{
    if (child > 0) {
        ssize_t got;
        do
            got = read(report, &error, sizeof error);
        while (got < 0 && errno == EINTR);
        if (got == (ssize_t)sizeof error)
            while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
        else
            error = 0;
    }
    close(report);
    if (error == 0)
        return child;
    errno = error;
    return -1;
}

pid_t tlx_spawn_with_own_pid(const char *path, char *const arguments[], char *const environment[], char *const places[])
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return -1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        reset_handlers();
        for (; *places != NULL; places++) {
            char digits[TLX_PID_ROOM];
            size_t count = 0;
            for (pid_t rest = getpid(); rest > 0; rest /= 10)
                digits[count++] = (char)('0' + rest % 10);
            for (size_t index = 0; index < count; index++)
                (*places)[index] = digits[count - 1 - index];
            (*places)[count] = '\0';
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        execve(path, arguments, environment);
        int error = errno;
        ssize_t written = write(report[1], &error, sizeof error);
        _exit(written < 0 ? 126 : 127);
    }
    int error = child < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    return await_exec(child, report[0], error);
}

pid_t tlx_spawn_dependent(const char *path, char *const arguments[], char *const environment[], const int standard[3])
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return -1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        reset_handlers();
        int error = 0;
        // First copy the descriptors to numbers from 3 on, because dup2 to 0, 1 or 2 could otherwise close a descriptor
        // that must still be copied.
        int copies[3];
        for (int index = 0; index < 3; index++)
            copies[index] = fcntl(standard[index], F_DUPFD_CLOEXEC, 3);
        for (int index = 0; index < 3; index++)
            if (dup2(copies[index], index) < 0)
                error = errno;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
            error = errno;
        if (getppid() != parent)
            _exit(127);
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, NULL);
        if (error == 0) {
            execve(path, arguments, environment);
            error = errno;
        }
        ssize_t written = write(report[1], &error, sizeof error);
        _exit(written < 0 ? 126 : 127);
    }
    int error = child < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    return await_exec(child, report[0], error);
}
