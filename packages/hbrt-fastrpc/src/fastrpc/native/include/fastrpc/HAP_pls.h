/* Values of the process, by type and key; stubs and libraries keep their state there. Emulator: the destructors of
 * values that were made are not called, because a core's process ends with all its memory.
 *
 * Source: the header of this name in Hexagon SDKs, for names and types, https://github.com/peyer/qcom_hexagon_sdk
 */
#ifndef HBRT_FASTRPC_HAP_PLS_H
#define HBRT_FASTRPC_HAP_PLS_H

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make the value, of this many bytes, with ctor; returns 0 and its address, or ctor's code; AEE_EALREADY if there is one. */
int HAP_pls_add(uintptr_t type, uintptr_t key, int size, int (*ctor)(void *ctx, void *data), void *ctx, void (*dtor)(void *), void **ppo);
/* The same, but returns the value that is there, if any. */
int HAP_pls_add_lookup(uintptr_t type, uintptr_t key, int size, int (*ctor)(void *ctx, void *data), void *ctx, void (*dtor)(void *), void **ppo);
/* Returns 0 and its address; AEE_ENOSUCH if there is none. */
int HAP_pls_lookup(uintptr_t type, uintptr_t key, void **ppo);

#ifdef __cplusplus
}
#endif

#endif
