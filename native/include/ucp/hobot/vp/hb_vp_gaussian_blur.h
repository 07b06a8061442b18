/**
 * hbVPGaussianBlur.
 *
 * Source: VP operator manual (J6 OE 3.0.17), GaussianBlur; emulator: the parameter's types.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_GAUSSIAN_BLUR_H
#define HBRT_HOBOT_VP_HB_VP_GAUSSIAN_BLUR_H

#include "hb_vp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters of a blur. */
typedef struct hbVPGaussianBlurParam {
  int32_t kernelSize; /* 3 or 5 */
  int32_t borderType; /* hbVPBorderType */
} hbVPGaussianBlurParam;

/**
 * Create a task that blurs `srcImg`. `taskHandle` NULL runs it immediately.
 * Returns 0; HB_SYS_INVALID_ARGUMENT for NULL; the codes of hbDSPRpcV2, and with `taskHandle` NULL the op's result.
 */
int32_t hbVPGaussianBlur(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg,
                         hbVPGaussianBlurParam const *gaussianParam);

#ifdef __cplusplus
}
#endif

#endif
