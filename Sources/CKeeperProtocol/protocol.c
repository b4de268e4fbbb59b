#include "torpor_keeper_protocol.h"
