/* The 2D engine's older interface in C: single calls on two pictures.
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

/* Returns 0; there is nothing to set up or tear down. */
int c_RkRgaInit(void);
void c_RkRgaDeInit(void);
/* Sets *ctx to NULL. */
void c_RkRgaGetContext(void **ctx);
/* Copy the rectangle of src to that of dst: scaled, rotated, converted, blended. src1, unless NULL, replaces dst as the
 * picture that src is blended with. Returns 0, or -EINVAL with a message on standard error. */
int c_RkRgaBlit(rga_info_t *src, rga_info_t *dst, rga_info_t *src1);
/* Fill the rectangle of dst with its color, RGBA from the lowest byte up. Returns 0 or -EINVAL. */
int c_RkRgaColorFill(rga_info_t *dst);
/* Returns 0: calls are synchronous. */
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
