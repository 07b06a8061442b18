/* A part of qurt.h. */
#include "qurt.h"
