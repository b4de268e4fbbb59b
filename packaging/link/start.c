// SPDX-License-Identifier: Apache-2.0
//
// What Swift's runtime does at each start, in less time: a part of libtorpor-swift.so (packaging/link/runtime).

// MARK: Traces of crashes

// The path of a helper of the runtime. At each start, the runtime looks for the one that prints traces of crashes, which
// no package has: to find the folder where it would be took a quarter of the instructions of a short command (dladdr(3)
// reads all names of the library). SWIFT_BACKTRACE can still name it.
char *__wrap_swift_copyAuxiliaryExecutablePath(const char *name);

char *__wrap_swift_copyAuxiliaryExecutablePath(const char *name) {
    (void)name;
    return 0;
}

// MARK: Arguments

// The runtime's own object with these two functions is left out. It searches the stack, which it finds by
// /proc/self/maps, for the arguments; glibc passes them to each constructor.
char **_swift_stdlib_getUnsafeArgvArgc(int *count);
void _swift_stdlib_overrideUnsafeArgvArgc(char **words, int count);

static char *none[1];
static char **arguments = none;
static int argument_count;

__attribute__((constructor)) static void take_arguments(int count, char **words) {
    arguments = words;
    argument_count = count;
}

char **_swift_stdlib_getUnsafeArgvArgc(int *count) {
    *count = argument_count;
    return arguments;
}

void _swift_stdlib_overrideUnsafeArgvArgc(char **words, int count) {
    arguments = words;
    argument_count = count;
}
