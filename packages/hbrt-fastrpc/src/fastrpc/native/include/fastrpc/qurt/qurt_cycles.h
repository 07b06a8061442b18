/* Part of qurt.h. */
#include "qurt.h"
