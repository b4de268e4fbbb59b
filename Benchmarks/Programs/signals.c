// SPDX-License-Identifier: Apache-2.0

// Replaces syscall(2) in torpord under callgrind (LD_PRELOAD): valgrind 3.19 does not support pidfd_send_signal(2),
// which suspends and resumes apps. This version calls kill(2) with the pid of the pidfd.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The pid of a pidfd, from "Pid:" in /proc/self/fdinfo (proc(5)); -1 if the process has ended.
static pid_t process_of(int pidfd) {
    char path[64];
    char text[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return -1;
    text[length] = 0;
    const char *line = strstr(text, "Pid:");
    return line ? (pid_t)strtol(line + 4, NULL, 10) : -1;
}

static long raw_call(long number, const long *a) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "no system calls are made here on this machine"
#endif
}

long syscall(long number, ...) {
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) arguments[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_pidfd_send_signal && arguments[3] == 0) {
        pid_t pid = process_of((int)arguments[0]);
        if (pid <= 0) {
            errno = ESRCH;
            return -1;
        }
        return kill(pid, (int)arguments[1]);
    }
    long result = raw_call(number, arguments);
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
