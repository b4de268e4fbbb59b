#include "torpor_policy_wire.h"

int main(void)
{
    return 0;
}
