/** What only the emulator has: a program that includes this does not build for the board. */
#ifndef HBRT_HBRT_H
#define HBRT_HBRT_H

#include <stdint.h>

#include "dnn/hb_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sentence of the last call that failed in this thread: what was wrong, with the value, and what to do; "" for none.
 * Valid until the next call in this thread.
 */
const char *hbrt_last_error(void);

/**
 * Give memory that another library made (a memfd, shared memory), such as a camera's buffer, a place among the board's
 * addresses: sets phyAddr, virAddr and memSize. No byte is copied. The result is cached; hbSysUnregisterMem undoes it.
 *
 * fd is open for reading and writing, and may be closed afterwards; offset is a multiple of 4096. Registrations are
 * counted, and those of the same memory have one physical address.
 * Returns 0; HB_SYS_INVALID_ARGUMENT for no memory, or a range that is not in it; HB_SYS_REGISTER_MEM_FAILED when it
 * cannot be shared, or the board is on another machine; HB_SYS_OUT_OF_MEMORY.
 */
int32_t hbrt_register_fd(hbSysMem *mem, int32_t fd, uint64_t offset, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif
