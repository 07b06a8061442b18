#include "mailbox.h"

uint32_t hbrt_layout_version(void) { return 3; }
