#include "../../../Clients/c/torpor_app.c"
