/* The mailbox of a board in C: docs/mailbox.md has the layout and the rules. */
#ifndef HBRT_MAILBOX_H
#define HBRT_MAILBOX_H

#include <stdint.h>

/* Layout version of the DDR file that this code speaks. */
uint32_t hbrt_layout_version(void);

#endif
