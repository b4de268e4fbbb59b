// SPDX-License-Identifier: Apache-2.0

// What a policy's process reads of a library: from a descriptor of any number here.
#include "../../../Sources/torpor-policy-host/host.h"

static int library;
#undef TORPOR_POLICY_HOST_LIBRARY
#define TORPOR_POLICY_HOST_LIBRARY library
#include "../../../Sources/torpor-policy-host/elf.c"

#include "include/CFuzzTargets.h"
#include "policy_end.h"

bool cfuzz_policy_library(int descriptor, char *runpath, size_t size)
{
    library = descriptor;
    runpath[0] = 0;
    if (setjmp(cfuzz_policy_ended) != 0)
        return false;
    host_elf_check("/usr/lib/torpor/policies/libfuzz.so");
    if (!host_elf_runpath(runpath, size))
        runpath[0] = 0;
    return true;
}
