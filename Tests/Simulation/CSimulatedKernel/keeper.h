/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_KEEPER_H
#define SIM_KEEPER_H

#include "simulated_kernel.h"

void sim_send_to_torpord(const void *message, size_t size, const int *fds, uint32_t count);
void sim_answer_number(uint32_t type, uint32_t id, uint32_t value);

// What is held by names. Each returns 0 or an errno, or answers the request with this id.
uint32_t sim_hold(const char *name, uint32_t flags, const int *fds, uint32_t *count);
uint32_t sim_release(const char *name);
void sim_release_all(void);
void sim_take(uint32_t id, const char *name, uint32_t offset);
void sim_take_all(uint32_t id, uint32_t index);
void sim_list_held(uint32_t id);

#endif
