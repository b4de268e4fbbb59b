// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// Kills torpord before a certain one of the system calls with which its loop is seen from outside: writes, messages and
/// signals. What it has in memory that others share, such as its records, is then as it was between two of them. It is
/// preloaded into torpord, which knows nothing of it.
package struct StepKiller {
    private let folder: String
    package var environment: [String: String] {
        ["LD_PRELOAD": folder + "/steps.so", "TPSTEP": folder + "/step"]
    }

    /// Steps are counted while the file is there; it says before which one of them the kill comes.
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <signal.h>
        #include <stdarg.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/socket.h>
        #include <sys/types.h>
        #include <sys/uio.h>
        #include <unistd.h>

        static void step(void) {
            static int count;
            const char *file = getenv("TPSTEP");
            if (file == NULL || strcmp(program_invocation_short_name, "torpord") != 0 || gettid() != getpid()) return;
            char text[16] = "";
            int error = errno, fd = open(file, O_RDONLY | O_CLOEXEC);
            if (fd < 0) {
                count = 0;
            } else {
                if (read(fd, text, sizeof text - 1) > 0 && ++count == atoi(text)) {
                    unlink(file);
                    kill(getpid(), SIGKILL);
                }
                close(fd);
            }
            errno = error;
        }
        #define STEP(result, name, parameters, arguments) \\
            result name parameters { \\
                static result (*real) parameters; \\
                if (real == NULL) real = dlsym(RTLD_NEXT, #name); \\
                step(); \\
                return real arguments; \\
            }
        STEP(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
        STEP(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
        STEP(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
        STEP(ssize_t, send, (int fd, const void *b, size_t n, int f), (fd, b, n, f))
        STEP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f))
        // pidfd_send_signal among others.
        long syscall(long number, ...) {
            static long (*real)(long, ...);
            if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
            va_list list;
            va_start(list, number);
            long a[6];
            for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
            va_end(list);
            step();
            return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        }
        """

    package init() throws {
        folder = try Daemon.makeFolder()
        try HangingDisk.build(Self.source, as: folder + "/steps.so")
    }

    /// From now on the steps are counted, and torpord is killed before this one; 1 is the first.
    package func arm(_ step: Int) throws {
        // At once there and whole.
        try File.replace(folder + "/step", Array("\(step)".utf8))
    }

    /// Kills no longer. Returns whether torpord was killed since ``arm(_:)``.
    package func disarm() -> Bool { (try? File.remove(folder + "/step")) == nil }

    package func remove() { try? File.removeTree(folder) }
}
