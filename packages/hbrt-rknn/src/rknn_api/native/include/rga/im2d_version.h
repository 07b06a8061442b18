/* Part of im2d.h, which declares everything. */
#include "im2d.h"
