// SPDX-License-Identifier: Apache-2.0

// The least cost of any command's process.
#include <stdio.h>

int main(void)
{
    return puts("hello") < 0;
}
