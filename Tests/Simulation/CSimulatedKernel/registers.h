/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_REGISTERS_H
#define SIM_REGISTERS_H

#include <stdint.h>

// What a thread that does not run has: all that it does not find on its stack.
struct sim_registers {
    void *stack;          // where it continues
    uintptr_t variables;  // its __thread variables
    char *memory;         // of the stack
};

// The variables of the real thread that calls this.
uintptr_t sim_own_variables(void);
// The one that calls this waits, the other runs.
void sim_switch_registers(struct sim_registers *from, const struct sim_registers *to);
// A stack on which `body` runs at the first switch. It must not return. Returns -1 without memory.
int sim_make_stack(struct sim_registers *registers, void (*body)(void));
void sim_free_stack(struct sim_registers *registers);

#endif
