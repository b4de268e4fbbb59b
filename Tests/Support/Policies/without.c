// SPDX-License-Identifier: Apache-2.0

// Executes the program TORPOR_TEST_HOST as on a kernel without what TORPOR_TEST_WITHOUT names: landlock, seccomp.

#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int make_unknown(unsigned number)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof program[0], program};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int count, char **arguments)
{
    const char *without = getenv("TORPOR_TEST_WITHOUT"), *host = getenv("TORPOR_TEST_HOST");
    if (count < 1 || without == NULL || host == NULL || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return 99;
    if (strstr(without, "landlock") != NULL && make_unknown(444) < 0)
        return 98;
    if (strstr(without, "seccomp") != NULL && make_unknown(SYS_seccomp) < 0)
        return 97;
    execv(host, arguments);
    return 96;
}
