// SPDX-License-Identifier: Apache-2.0

// What the whole process of any command costs at least.
#include <stdio.h>

int main(void)
{
    return puts("hello") < 0;
}
