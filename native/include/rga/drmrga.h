/* Numbers of the 2D engine's older interface that programs still use.
 *
 * Source: librga (Apache 2.0), https://github.com/airockchip/librga
 */
#ifndef _rk_drm_rga_
#define _rk_drm_rga_

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

#endif
