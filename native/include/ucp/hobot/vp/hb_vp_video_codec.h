/**
 * Types of the S series' video codecs. Emulator: there are no functions, because no public program calls them.
 *
 * Source: public programs.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_VIDEO_CODEC_H
#define HBRT_HOBOT_VP_HB_VP_VIDEO_CODEC_H

#include "hb_vp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Codec of a stream. Emulator: the numbers. */
typedef enum { HB_VP_VIDEO_TYPE_H264 = 0, HB_VP_VIDEO_TYPE_H265 = 1 } hbVPVideoType;

#ifdef __cplusplus
}
#endif

#endif
