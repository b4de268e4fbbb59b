// SPDX-License-Identifier: Apache-2.0

// The target is only a header, but the compiler needs a source file.
#include "torpor_policy.h"
