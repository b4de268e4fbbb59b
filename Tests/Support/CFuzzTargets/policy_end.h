/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_END_H
#define POLICY_END_H

#include <setjmp.h>

// Where host_refuse and host_give_up lead.
extern jmp_buf cfuzz_policy_ended;

#endif
