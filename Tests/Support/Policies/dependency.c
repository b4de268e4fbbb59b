// SPDX-License-Identifier: Apache-2.0

// What dependent.c needs.

const char *dependency_says(void);
const char *dependency_says(void) { return "beside it"; }
