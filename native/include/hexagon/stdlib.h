/* The C library's, and memalign(), which a Hexagon's declares there: programs that forbid malloc() after it include it late. */
#include_next <stdlib.h>

#include <malloc.h>
