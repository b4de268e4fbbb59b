// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// A disk that hangs when it is told to: the library's own calls to write or to sync the database, or another file,
/// wait as long as a file is there. With `lookups`, calls that look such a path up wait too. It is preloaded into
/// torpord, which knows nothing of it.
package struct HangingDisk {
    /// Where the library and the switch are.
    package let folder: String
    /// What the path of a file that hangs has in it.
    package let part: String
    /// Whether lookups of such paths (stat, lstat) hang too.
    private let hasLookups: Bool
    package var environment: [String: String] {
        var environment = ["LD_PRELOAD": folder + "/hang.so", "TPHANG": folder + "/hang", "TPHANGPART": part]
        if hasLookups { environment["TPHANGLOOKUPS"] = "1" }
        return environment
    }

    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/types.h>
        #include <unistd.h>

        static void wait_for_path(const char *file, const char *path) {
            const char *part = getenv("TPHANGPART");
            if (part == NULL || strstr(path, part) == NULL) return;
            char waiting[4096];
            snprintf(waiting, sizeof waiting, "%s.waits", file);
            FILE *mark = fopen(waiting, "w");
            if (mark != NULL) fclose(mark);
            while (access(file, F_OK) == 0) usleep(2000);
        }
        static void wait_for_disk(int fd) {
            const char *file = getenv("TPHANG");
            char link[64], path[4096];
            if (file == NULL || access(file, F_OK) != 0) return;
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            ssize_t length = readlink(link, path, sizeof path - 1);
            if (length < 0) return;
            path[length] = 0;
            wait_for_path(file, path);
        }
        // Without <sys/stat.h>, which declares them with other parameters.
        #define LOOKUP(name) \\
            int name(const char *path, void *status) { \\
                static int (*real)(const char *, void *); \\
                const char *file = getenv("TPHANG"); \\
                if (real == NULL) real = dlsym(RTLD_NEXT, #name); \\
                if (getenv("TPHANGLOOKUPS") == NULL || file == NULL) return real(path, status); \\
                if (access(file, F_OK) == 0) wait_for_path(file, path); \\
                return real(path, status); \\
            }
        LOOKUP(stat)
        LOOKUP(lstat)
        #define HANGING(result, name, parameters, arguments) \\
            result name parameters { \\
                static result (*real) parameters; \\
                if (real == NULL) real = dlsym(RTLD_NEXT, #name); \\
                wait_for_disk(fd); \\
                return real arguments; \\
            }
        HANGING(ssize_t, pwrite64, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
        HANGING(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
        HANGING(int, fdatasync, (int fd), (fd))
        HANGING(int, fsync, (int fd), (fd))
        HANGING(int, ftruncate64, (int fd, off_t n), (fd, n))
        """

    package init(_ part: String = "/torpor.db", lookups: Bool = false) throws {
        self.part = part
        hasLookups = lookups
        folder = try Daemon.makeFolder()
        try Self.build(Self.source, as: folder + "/hang.so")
    }

    /// Builds a library that is preloaded into a program.
    static func build(_ source: String, as library: String) throws {
        try source.write(toFile: library + ".c", atomically: false, encoding: .utf8)
        let compiler = ["/usr/bin/cc", "/usr/bin/clang", "/opt/swift/usr/bin/clang"].first { File.isExecutable($0) }
        guard let compiler else { throw Trouble("there is no C compiler, which every Swift comes with") }
        let (code, output) = try Spawn.run([compiler, "-shared", "-fPIC", "-o", library, library + ".c", "-ldl"])
        guard code == 0 else { throw Trouble("\(library) could not be built: \(output)") }
    }

    package func hang() throws { try File.write(folder + "/hang", "") }
    package func answer() throws { try File.remove(folder + "/hang") }
    /// Whether a write waits, or has waited.
    package var waits: Bool { File.exists(folder + "/hang.waits") }
    package func remove() { try? File.removeTree(folder) }
}
