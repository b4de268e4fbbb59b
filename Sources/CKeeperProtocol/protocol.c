// SPDX-License-Identifier: Apache-2.0

#include "torpor_keeper_protocol.h"

// Both sides copy these structures byte by byte, so every compiler must lay them out the same.
_Static_assert(sizeof(struct torpor_keeper_launch) == 56, "torpor_keeper_launch");
_Static_assert(sizeof(struct torpor_keeper_slot) == 152, "torpor_keeper_slot");
_Static_assert(sizeof(struct torpor_keeper_orphan) == 272, "torpor_keeper_orphan");
_Static_assert(sizeof(struct torpor_keeper_record) == 168, "torpor_keeper_record");
_Static_assert(sizeof(struct torpor_keeper_resume) == 312, "torpor_keeper_resume");
