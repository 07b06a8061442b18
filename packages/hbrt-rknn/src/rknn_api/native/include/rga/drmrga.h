/* The 2D engine's older interface: constants, and the picture structure (c_RkRgaBlit of RgaApi.h).
 *
 * Source: librga (Apache 2.0), https://github.com/airockchip/librga
 */
#ifndef _rk_drm_rga_
#define _rk_drm_rga_

#include <errno.h>
#include <stdint.h>

#include "rga.h"

#define RGA_BLIT_SYNC 0x5017
#define RGA_BLIT_ASYNC 0x5018
#define HAL_TRANSFORM_FLIP_H 0x01
#define HAL_TRANSFORM_FLIP_V 0x02
#define HAL_TRANSFORM_ROT_90 0x04
#define HAL_TRANSFORM_ROT_180 0x03
#define HAL_TRANSFORM_ROT_270 0x07
#define HAL_TRANSFORM_FLIP_H_V 0x08

/* A rectangle of a picture, the strides of the whole picture in pixels, and its format. size has no effect. */
typedef struct rga_rect {
  int xoffset, yoffset, width, height;
  int wstride, hstride;
  int format;
  int size;
} rga_rect_t;

typedef struct rga_nn {
  int nn_flag;
  int scale_r, scale_g, scale_b;
  int offset_r, offset_g, offset_b;
} rga_nn_t;

typedef struct rga_dither {
  int enable, mode;
  int lut0_l, lut0_h, lut1_l, lut1_h;
} rga_dither_t;

/* A picture: its memory (the first of handle, fd, virAddr and phyAddr that is set), its rectangle, and for a source the
 * operations to apply. rotation is one of HAL_TRANSFORM_*; blend is 0, or 0x105 or 0x405 for source over destination,
 * with the opacity in the bits above the low 16. Other fields have no effect. */
typedef struct rga_info {
  int fd;
  void *virAddr;
  void *phyAddr;
  unsigned hnd;
  int format;
  rga_rect_t rect;
  unsigned int blend;
  int bufferSize;
  int rotation;
  int color;
  int testLog, mmuFlag;
  int colorkey_en, colorkey_mode, colorkey_max, colorkey_min;
  int scale_mode;
  int color_space_mode;
  int sync_mode;
  rga_nn_t nn;
  rga_dither_t dither;
  int rop_code;
  int rd_mode;
  unsigned short is_10b_compact, is_10b_endian;
  int in_fence_fd, out_fence_fd;
  int core, priority;
  unsigned short enable;
  int handle;
  char reserve[496];
} rga_info_t;

static inline int rga_set_rect(rga_rect_t *rect, int x, int y, int w, int h, int sw, int sh, int f) {
  if (!rect) return -EINVAL;
  rect->xoffset = x, rect->yoffset = y, rect->width = w, rect->height = h;
  rect->wstride = sw, rect->hstride = sh, rect->format = f;
  return 0;
}

static inline void rga_set_rotation(rga_info_t *info, int angle) {
  if (angle == 90) info->rotation = HAL_TRANSFORM_ROT_90;
  if (angle == 180) info->rotation = HAL_TRANSFORM_ROT_180;
  if (angle == 270) info->rotation = HAL_TRANSFORM_ROT_270;
}

#endif
