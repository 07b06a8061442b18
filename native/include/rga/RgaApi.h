/* The 2D engine's older interface in C: one call, of two pictures.
 *
 * Source: librga (Apache 2.0), https://github.com/airockchip/librga
 */
#ifndef _rockchip_rga_c_h_
#define _rockchip_rga_c_h_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drmrga.h"
#include "rga.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0; there is nothing to begin or end. */
int c_RkRgaInit(void);
void c_RkRgaDeInit(void);
/* *ctx is NULL. */
void c_RkRgaGetContext(void **ctx);
/* Take the part of src to that of dst: scaled, turned, converted, blended. src1 is what src is blended with instead of
 * dst, or NULL. 0, or -EINVAL with a sentence on standard error. */
int c_RkRgaBlit(rga_info_t *src, rga_info_t *dst, rga_info_t *src1);
/* Fill the part of dst with its color, RGBA from the lowest byte on. 0 or -EINVAL. */
int c_RkRgaColorFill(rga_info_t *dst);
/* 0: every call has ended when it returns. */
int c_RkRgaFlush(void);

#define RgaInit(ctx) (c_RkRgaGetContext(ctx), c_RkRgaInit())
#define RgaDeInit(ctx) ((void)(ctx), c_RkRgaDeInit())
#define RgaBlit(...) c_RkRgaBlit(__VA_ARGS__)
#define RgaCollorFill(...) c_RkRgaColorFill(__VA_ARGS__)
#define RgaFlush() c_RkRgaFlush()

#ifdef __cplusplus
}
#endif

#endif
