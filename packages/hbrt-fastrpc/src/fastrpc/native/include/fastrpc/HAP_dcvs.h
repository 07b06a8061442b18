/* Part of HAP_power.h. */
#include "HAP_power.h"
