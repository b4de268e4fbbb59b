// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "registers.h"

#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

// Registers that a function leaves as they were, by the ABI of the processor; a switch keeps them on the stack. The
// register of the thread's variables is set too: each C function finds its thread's errno and such.

enum { STACK = 1 << 20, GUARD = 4096, STACKS = 64 };

#if defined(__x86_64__)

// https://gitlab.com/x86-psABIs/x86-64-ABI, section 3.2.1. `can_set`: user programs may set FS, which needs no call then.
__attribute__((naked)) static void switch_stacks(void **from __attribute__((unused)), void *to __attribute__((unused)),
                                                 uintptr_t variables __attribute__((unused)),
                                                 int can_set __attribute__((unused)))
{
    __asm__("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
            "mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
            "test %ecx, %ecx\n je 1f\n"
            "wrfsbase %rdx\n jmp 2f\n"
            "1: mov $158, %eax\n mov $0x1002, %edi\n mov %rdx, %rsi\n syscall\n"  // arch_prctl(ARCH_SET_FS)
            "2: pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret");
}

enum { PLACE_OF_RETURN = 6, WORDS = 8 };

uintptr_t sim_own_variables(void)
{
    uintptr_t variables;
    __asm__("mov %%fs:0, %0" : "=r"(variables));
    return variables;
}

static int can_set(void) { return (getauxval(AT_HWCAP2) & 2) != 0; }  // HWCAP2_FSGSBASE

#elif defined(__aarch64__)

// https://github.com/ARM-software/abi-aa/blob/main/aapcs64/aapcs64.rst, section 6.1.
__attribute__((naked)) static void switch_stacks(void **from __attribute__((unused)), void *to __attribute__((unused)),
                                                 uintptr_t variables __attribute__((unused)),
                                                 int can_set __attribute__((unused)))
{
    __asm__("sub sp, sp, #160\n"
            "stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n stp x25, x26, [sp, #48]\n"
            "stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
            "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
            "mov x9, sp\n str x9, [x0]\n mov sp, x1\n msr tpidr_el0, x2\n"
            "ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n"
            "ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
            "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
            "add sp, sp, #160\n ret");
}

enum { PLACE_OF_RETURN = 11, WORDS = 20 };

uintptr_t sim_own_variables(void)
{
    uintptr_t variables;
    __asm__("mrs %0, tpidr_el0" : "=r"(variables));
    return variables;
}

static int can_set(void) { return 1; }

#else
#error "no switch for this processor"
#endif

void sim_switch_registers(struct sim_registers *from, const struct sim_registers *to)
{
    static int may_set = -1;
    if (may_set < 0)
        may_set = can_set();
    switch_stacks(&from->stack, to->stack, to->variables, may_set);
}

// Those that are free are used again: their pages are there already.
static char *free_stacks[STACKS];
static int free_count;

int sim_make_stack(struct sim_registers *registers, void (*body)(void))
{
    char *memory = free_count > 0 ? free_stacks[--free_count] : NULL;
    if (memory == NULL) {
        memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, GUARD, PROT_NONE) < 0)
            return -1;
    }
    // As if `body` had been about to begin: on x86-64 its stack is then 8 bytes off a multiple of 16.
    uintptr_t *words = (uintptr_t *)(memory + STACK) - WORDS;
    memset(words, 0, WORDS * sizeof *words);
    words[PLACE_OF_RETURN] = (uintptr_t)body;
    registers->stack = words;
    registers->memory = memory;
    return 0;
}

void sim_free_stack(struct sim_registers *registers)
{
    if (free_count < STACKS)
        free_stacks[free_count++] = registers->memory;
    else
        munmap(registers->memory, STACK);
    registers->memory = NULL;
}
