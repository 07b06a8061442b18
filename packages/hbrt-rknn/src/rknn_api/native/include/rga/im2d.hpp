/* A part of im2d.h, which has all of it. */
#include "im2d.h"
