/* Where the sources of librga have it. */
#include "../im2d.h"
