#include "../../../Sources/torpor-keeper/table.c"
