// SPDX-License-Identifier: Apache-2.0

// This build target consists of a header only, but the compiler needs at least one source file.
#include "torpor_policy_wire.h"
