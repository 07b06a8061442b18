/* iDMA: copies between DDR and TCM that continue while the core computes.
 *
 * A copy returns a handle of 1 or more, or a negative code (xvGetErrorInfo returns the message). idma_desc_done polls
 * it. The bytes move when the copy is found done, so a program that does not wait sees the old bytes.
 * With IDMA_USE_MULTICHANNEL defined before this header is included, each call takes the channel as its first argument.
 *
 * Source: Halide's Xtensa runtime and ExecuTorch's Cadence kernels, for the calls' signatures and the constants' names,
 * https://github.com/halide/Halide/blob/xtensa-codegen/src/runtime/xtensa_dma.cpp,
 * https://github.com/pytorch/executorch/tree/main/backends/cadence; DSP development guide (J5 OE), 10.2.3.3.6, for
 * IDMA_COPY. Emulator: the values, and the set-up calls, which only check their arguments.
 */
#ifndef HBRT_XTENSA_IDMA_H
#define HBRT_XTENSA_IDMA_H

#include <stddef.h>
#include <stdint.h>

#include "../hbrt/site.h"

typedef int32_t idma_status_t;
enum { IDMA_OK = 0, IDMA_ERR_BAD_TRANSFER = -1, IDMA_ERR_QUEUE_FULL = -2, IDMA_ERR_UNKNOWN_HANDLE = -3 };
typedef enum { IDMA_1D_DESC = 1, IDMA_2D_DESC = 2, IDMA_64B_DESC = 4 } idma_type_t;
typedef enum { MAX_BLOCK_2, MAX_BLOCK_4, MAX_BLOCK_8, MAX_BLOCK_16 } idma_max_block_t;
typedef enum { TICK_CYCLES_1, TICK_CYCLES_2, TICK_CYCLES_4, TICK_CYCLES_8 } idma_ticks_cyc_t;
enum { DESC_NOTIFY_W_INT = 1, DESC_IDMA_PRIOR_L = 0, DESC_IDMA_PRIOR_H = 2 };
typedef void (*idma_err_callback_fn)(const void *details);
typedef void (*idma_callback_fn)(void *data);
typedef struct idma_buffer {
  int32_t count;
} idma_buffer_t;
#define IDMA_BUFFER_DEFINE(name, descriptors, type) idma_buffer_t name[1] = {{(descriptors)}}

HBRT_BEGIN

int32_t hbrt_idma_copy(const char *site, void *dst, const void *src, size_t size, int32_t flags);
int32_t hbrt_idma_copy_2d(const char *site, void *dst, const void *src, size_t row_bytes, int32_t flags,
                          uint32_t rows, uint32_t src_pitch, uint32_t dst_pitch);
/* dst and src point to the addresses, like those in 64-byte descriptors. */
int32_t hbrt_idma_copy_3d(const char *site, void *dst, void *src, uint32_t flags, size_t row_bytes, uint32_t rows,
                          uint32_t tiles, uint32_t src_row_pitch, uint32_t dst_row_pitch, uint32_t src_tile_pitch,
                          uint32_t dst_tile_pitch);
/* 1 if the copy is done and its bytes have moved, else 0; the task fails for a handle that no copy returned. */
int32_t hbrt_idma_desc_done(const char *site, int32_t handle);
/* Number of copies in flight. */
int32_t hbrt_idma_buffer_status(const char *site);
/* Wait for all copies. */
idma_status_t hbrt_idma_hw_wait_all(const char *site);
static inline idma_status_t hbrt_idma_init(int32_t flags, idma_max_block_t block, int32_t requests,
                                           idma_ticks_cyc_t ticks, uint32_t timeout, idma_err_callback_fn on_error) {
  (void)flags, (void)block, (void)requests, (void)ticks, (void)timeout, (void)on_error;
  return IDMA_OK;
}
static inline idma_status_t hbrt_idma_init_loop(idma_buffer_t *buffer, idma_type_t type, int32_t descriptors,
                                                void *data, idma_callback_fn on_done) {
  (void)type, (void)data, (void)on_done;
  return buffer && descriptors > 0 && descriptors <= buffer->count ? IDMA_OK : IDMA_ERR_BAD_TRANSFER;
}

HBRT_END

#ifdef IDMA_USE_MULTICHANNEL
#define HBRT_CHANNEL(channel) (void)(channel),
#define idma_init(channel, ...) (HBRT_CHANNEL(channel) hbrt_idma_init(__VA_ARGS__))
#define idma_init_loop(channel, ...) (HBRT_CHANNEL(channel) hbrt_idma_init_loop(__VA_ARGS__))
#define idma_copy_desc(channel, ...) (HBRT_CHANNEL(channel) hbrt_idma_copy(HBRT_SITE, __VA_ARGS__))
#define idma_copy_2d_desc(channel, ...) (HBRT_CHANNEL(channel) hbrt_idma_copy_2d(HBRT_SITE, __VA_ARGS__))
#define idma_desc_done(channel, handle) (HBRT_CHANNEL(channel) hbrt_idma_desc_done(HBRT_SITE, handle))
#define idma_buffer_status(channel) (HBRT_CHANNEL(channel) hbrt_idma_buffer_status(HBRT_SITE))
#define idma_hw_wait_all(channel) (HBRT_CHANNEL(channel) hbrt_idma_hw_wait_all(HBRT_SITE))
#define idma_sleep(channel) ((void)(HBRT_CHANNEL(channel) hbrt_idma_buffer_status(HBRT_SITE)))
#else
#define idma_init(...) hbrt_idma_init(__VA_ARGS__)
#define idma_init_loop(...) hbrt_idma_init_loop(__VA_ARGS__)
#define idma_copy_desc(...) hbrt_idma_copy(HBRT_SITE, __VA_ARGS__)
#define idma_copy_2d_desc(...) hbrt_idma_copy_2d(HBRT_SITE, __VA_ARGS__)
#define idma_desc_done(handle) hbrt_idma_desc_done(HBRT_SITE, handle)
#define idma_buffer_status() hbrt_idma_buffer_status(HBRT_SITE)
#define idma_hw_wait_all() hbrt_idma_hw_wait_all(HBRT_SITE)
#define idma_sleep() ((void)hbrt_idma_buffer_status(HBRT_SITE))
#endif
/* The channel argument exists in both builds. */
#define idma_copy_3d_desc64(channel, ...) ((void)(channel), hbrt_idma_copy_3d(HBRT_SITE, __VA_ARGS__))

/* Used without a semicolon, as in the guide: a flat copy; its handle goes to ret. The source comes first. */
#ifndef IDMA_COPY
#define IDMA_COPY(ret, src, dst, size) \
  { (ret) = hbrt_idma_copy(HBRT_SITE, dst, src, size, DESC_NOTIFY_W_INT); }
#endif

#endif /* HBRT_XTENSA_IDMA_H */
