// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// Kills torpord between two of the records that it writes for the next one: after a certain store to the word of the
/// recovery file that says whose record is under way. Between two records there is no system call at which to kill it:
/// from the moment that it is armed, the mapping of the file is read-only, and each store to it is a signal, after which
/// one instruction is carried out. It is preloaded into torpord, which knows nothing of it.
package struct RecordKiller {
    private let folder: String
    package var environment: [String: String] {
        ["LD_PRELOAD": folder + "/records.so", "TPRECORDS": folder + "/step"]
    }

    /// Whether the processor can be made to carry out one instruction: by a flag that a handler of signals sets.
    package static let isPossible: Bool = {
        #if arch(x86_64)
        true
        #else
        false
        #endif
    }()

    /// Stores are counted while the file is there; it says after which one of them the kill comes.
    private static let source = """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <signal.h>
        #include <stdint.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <ucontext.h>
        #include <unistd.h>

        extern void *__libc_malloc(size_t);
        enum { UNDER_WAY = 128, TRAP = 0x100 };  // RecoveryFile.underWayOffset; the trap flag in EFLAGS
        static uintptr_t start, end, target;
        static int count, wanted;

        static void on_store(int number, siginfo_t *info, void *context) {
            ucontext_t *state = context;
            if (number == SIGSEGV) {
                target = (uintptr_t)info->si_addr;
                if (target < start || target >= end) {
                    signal(SIGSEGV, SIG_DFL);
                    return;
                }
                mprotect((void *)start, end - start, PROT_READ | PROT_WRITE);
                state->uc_mcontext.gregs[REG_EFL] |= TRAP;
                return;
            }
            state->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP;
            if (target == start + UNDER_WAY && ++count == wanted) {
                unlink(getenv("TPRECORDS"));
                kill(getpid(), SIGKILL);
            }
            mprotect((void *)start, end - start, PROT_READ);
        }
        static void arm(void) {
            static char line[4096];
            FILE *maps = fopen("/proc/self/maps", "re");
            while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
                if (strstr(line, "/recovery\\n") != NULL && strstr(line, " rw-s ") != NULL)
                    sscanf(line, "%lx-%lx", &start, &end);
            if (maps != NULL) fclose(maps);
            struct sigaction action = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO};
            sigaction(SIGSEGV, &action, NULL);
            sigaction(SIGTRAP, &action, NULL);
            count = 0;
            mprotect((void *)start, end - start, PROT_READ);
        }
        static void look(void) {
            static int is_looking;
            const char *file = getenv("TPRECORDS");
            if (is_looking || file == NULL || strcmp(program_invocation_short_name, "torpord") != 0) return;
            if (gettid() != getpid()) return;
            is_looking = 1;
            char text[16] = "";
            int error = errno, fd = open(file, O_RDONLY | O_CLOEXEC);
            if (fd >= 0) {
                wanted = read(fd, text, sizeof text - 1) > 0 ? atoi(text) : 0;
                close(fd);
                if (start == 0) arm();
            } else if (start != 0) {
                mprotect((void *)start, end - start, PROT_READ | PROT_WRITE);
                start = 0;
            }
            errno = error;
            is_looking = 0;
        }
        void *malloc(size_t size) {
            look();
            return __libc_malloc(size);
        }
        """

    package init() throws {
        folder = try Daemon.makeFolder()
        try HangingDisk.build(Self.source, as: folder + "/records.so")
    }

    /// Has torpord killed after this store from now on; 1 is the first. A record takes two.
    package func arm(_ step: Int) throws {
        // At once there and whole.
        try File.replace(folder + "/step", Array("\(step)".utf8))
    }

    /// Whether torpord was killed since ``arm(_:)``.
    package var hasKilled: Bool { !File.exists(folder + "/step") }

    package func remove() { try? File.removeTree(folder) }
}
