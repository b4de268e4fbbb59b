// SPDX-License-Identifier: Apache-2.0

#include "../../../Clients/c/torpor_app.c"
