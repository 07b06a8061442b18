/* Pixel formats of the 2D engine (RGA): the names and numbers of its public headers, in our own words.
 *
 * Source: librga (Apache 2.0), https://github.com/airockchip/librga
 */
#ifndef _RGA_DRIVER_H_
#define _RGA_DRIVER_H_

#include <stdint.h>

/* The letters give the order in memory, from the lowest byte up. _SP has two planes, _P three; the others have one. */
typedef enum _Rga_SURF_FORMAT {
  RK_FORMAT_RGBA_8888 = 0x0 << 8,
  RK_FORMAT_RGBX_8888 = 0x1 << 8,
  RK_FORMAT_RGB_888 = 0x2 << 8,
  RK_FORMAT_BGRA_8888 = 0x3 << 8,
  RK_FORMAT_RGB_565 = 0x4 << 8,
  RK_FORMAT_RGBA_5551 = 0x5 << 8,
  RK_FORMAT_RGBA_4444 = 0x6 << 8,
  RK_FORMAT_BGR_888 = 0x7 << 8,
  RK_FORMAT_YCbCr_422_SP = 0x8 << 8,
  RK_FORMAT_YCbCr_422_P = 0x9 << 8,
  RK_FORMAT_YCbCr_420_SP = 0xa << 8, /* NV12 */
  RK_FORMAT_YCbCr_420_P = 0xb << 8,  /* I420 */
  RK_FORMAT_YCrCb_422_SP = 0xc << 8,
  RK_FORMAT_YCrCb_422_P = 0xd << 8,
  RK_FORMAT_YCrCb_420_SP = 0xe << 8, /* NV21 */
  RK_FORMAT_YCrCb_420_P = 0xf << 8,  /* YV12 */
  RK_FORMAT_BPP1 = 0x10 << 8,
  RK_FORMAT_BPP2 = 0x11 << 8,
  RK_FORMAT_BPP4 = 0x12 << 8,
  RK_FORMAT_BPP8 = 0x13 << 8,
  RK_FORMAT_Y4 = 0x14 << 8,
  RK_FORMAT_YCbCr_400 = 0x15 << 8, /* gray */
  RK_FORMAT_BGRX_8888 = 0x16 << 8,
  RK_FORMAT_YVYU_422 = 0x18 << 8,
  RK_FORMAT_YVYU_420 = 0x19 << 8,
  RK_FORMAT_VYUY_422 = 0x1a << 8,
  RK_FORMAT_VYUY_420 = 0x1b << 8,
  RK_FORMAT_YUYV_422 = 0x1c << 8,
  RK_FORMAT_YUYV_420 = 0x1d << 8,
  RK_FORMAT_UYVY_422 = 0x1e << 8,
  RK_FORMAT_UYVY_420 = 0x1f << 8,
  RK_FORMAT_YCbCr_420_SP_10B = 0x20 << 8,
  RK_FORMAT_YCrCb_420_SP_10B = 0x21 << 8,
  RK_FORMAT_YCbCr_422_SP_10B = 0x22 << 8,
  RK_FORMAT_YCrCb_422_SP_10B = 0x23 << 8,
  RK_FORMAT_YCbCr_422_10b_SP = RK_FORMAT_YCbCr_422_SP_10B,
  RK_FORMAT_YCrCb_422_10b_SP = RK_FORMAT_YCrCb_422_SP_10B,
  RK_FORMAT_BGR_565 = 0x24 << 8,
  RK_FORMAT_BGRA_5551 = 0x25 << 8,
  RK_FORMAT_BGRA_4444 = 0x26 << 8,
  RK_FORMAT_ARGB_8888 = 0x28 << 8,
  RK_FORMAT_XRGB_8888 = 0x29 << 8,
  RK_FORMAT_ARGB_5551 = 0x2a << 8,
  RK_FORMAT_ARGB_4444 = 0x2b << 8,
  RK_FORMAT_ABGR_8888 = 0x2c << 8,
  RK_FORMAT_XBGR_8888 = 0x2d << 8,
  RK_FORMAT_ABGR_5551 = 0x2e << 8,
  RK_FORMAT_ABGR_4444 = 0x2f << 8,
  RK_FORMAT_RGBA2BPP = 0x30 << 8,
  RK_FORMAT_A8 = 0x31 << 8,
  RK_FORMAT_YCbCr_444_SP = 0x32 << 8,
  RK_FORMAT_YCrCb_444_SP = 0x33 << 8,
  RK_FORMAT_Y8 = 0x34 << 8,
  RK_FORMAT_UNKNOWN = 0x100 << 8,
} RgaSURF_FORMAT;

#endif
