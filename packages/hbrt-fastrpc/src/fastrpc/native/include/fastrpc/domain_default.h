/* Part of domain.h. */
#include "domain.h"
