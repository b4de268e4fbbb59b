/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KEEPER_STUBS_H
#define KEEPER_STUBS_H

#include "include/CFuzzTargets.h"

// As many as a message may have, none of which is open.
const int *cfuzz_descriptors(void);

#endif
