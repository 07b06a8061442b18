/* A part of domain.h. */
#include "domain.h"
