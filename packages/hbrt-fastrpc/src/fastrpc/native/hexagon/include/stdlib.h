/* The C library's stdlib.h, and memalign(), which Hexagon's version declares: it is included here because
 * programs may poison malloc() after this header. */
#include_next <stdlib.h>

#include <malloc.h>
