// SPDX-License-Identifier: Apache-2.0

#include "../../../Sources/torpor-keeper/held.c"
