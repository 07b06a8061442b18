/** Extensions of the emulator: a program that includes this header does not build for the board. */
#ifndef HBRT_HBRT_H
#define HBRT_HBRT_H

#include <stdint.h>

#include "dnn/hb_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Error message of the last call that failed in this thread: what was wrong, the value, and what to do; "" if none
 * failed. Valid until the next call in this thread.
 */
const char *hbrt_last_error(void);

/**
 * Map memory from another library (a memfd, shared memory), such as a camera buffer, into the board's address space:
 * sets phyAddr, virAddr and memSize. Nothing is copied. The mapping is cached; hbSysUnregisterMem undoes it.
 *
 * fd must be open for reading and writing, and may be closed afterwards; offset must be a multiple of 4096.
 * Registrations are counted, and all registrations of the same memory have the same physical address.
 * Returns 0; HB_SYS_INVALID_ARGUMENT if there is no memory or the range is outside it; HB_SYS_REGISTER_MEM_FAILED if it
 * cannot be shared, or the board is on another machine; HB_SYS_OUT_OF_MEMORY.
 */
int32_t hbrt_register_fd(hbSysMem *mem, int32_t fd, uint64_t offset, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif
