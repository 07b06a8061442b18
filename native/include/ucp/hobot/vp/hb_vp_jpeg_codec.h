/**
 * hbVPJPEG*: JPEG on the S series' JPU. Not supported: each function returns HB_SYS_NOT_SUPPORTED, with a message.
 *
 * Source: public programs. Emulator: the field order, and the defaults.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_JPEG_CODEC_H
#define HBRT_HOBOT_VP_HB_VP_JPEG_CODEC_H

#include "hb_vp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A codec; valid until it is released. */
typedef void *hbVPJPEGContext;

/** Parameters of an encoder. */
typedef struct hbVPJPEGEncParam {
  uint8_t imageFormat; /* hbVPImageFormat */
  int32_t width;
  int32_t height;
  uint32_t qualityFactor; /* 1..100 */
  uint64_t backend;
} hbVPJPEGEncParam;

/** Parameters of a decoder. */
typedef struct hbVPJPEGDecParam {
  uint8_t imageFormat; /* hbVPImageFormat of the result */
  uint64_t backend;
} hbVPJPEGDecParam;

/** Set the defaults. */
#define HB_VP_INITIALIZE_JPEG_ENC_PARAM(param)      \
  do {                                              \
    (param)->imageFormat = HB_VP_IMAGE_FORMAT_NV12; \
    (param)->width = 0;                             \
    (param)->height = 0;                            \
    (param)->qualityFactor = 50;                    \
    (param)->backend = HB_UCP_CORE_ANY;             \
  } while (0)

/** Set the defaults. */
#define HB_VP_INITIALIZE_JPEG_DEC_PARAM(param)      \
  do {                                              \
    (param)->imageFormat = HB_VP_IMAGE_FORMAT_NV12; \
    (param)->backend = HB_UCP_CORE_ANY;             \
  } while (0)

/** Create an encoder. */
int32_t hbVPCreateJPEGEncContext(hbVPJPEGContext *context, hbVPJPEGEncParam *param);

/** Release an encoder. */
int32_t hbVPReleaseJPEGEncContext(hbVPJPEGContext context);

/** Create a task that encodes an image. */
int32_t hbVPJPEGEncode(hbUCPTaskHandle_t *taskHandle, hbVPImage const *srcImg, hbVPJPEGContext context);

/** A task's encoded result; valid until it is released. */
int32_t hbVPGetJPEGEncOutputBuffer(hbVPArray *outBuf, hbUCPTaskHandle_t taskHandle);

/** Create a decoder. */
int32_t hbVPCreateJPEGDecContext(hbVPJPEGContext *context, hbVPJPEGDecParam *param);

/** Release a decoder. */
int32_t hbVPReleaseJPEGDecContext(hbVPJPEGContext context);

/** Create a task that decodes the bytes of a JPEG file. */
int32_t hbVPJPEGDecode(hbUCPTaskHandle_t *taskHandle, hbVPArray const *srcBuf, hbVPJPEGContext context);

/** A task's decoded result; valid until it is released. */
int32_t hbVPGetJPEGDecOutputBuffer(hbVPImage *outImg, hbUCPTaskHandle_t taskHandle);

#ifdef __cplusplus
}
#endif

#endif
