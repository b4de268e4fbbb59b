#include "../../../Sources/torpor-keeper/held.c"
