// SPDX-License-Identifier: Apache-2.0

// The header is all there is to this target; the compiler wants something to compile.
#include "torpor_policy_wire.h"
