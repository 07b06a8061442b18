/**
 * hbVPCvtColor.
 *
 * Source: public programs; the values are those of the op CvtColor.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_CVT_COLOR_H
#define HBRT_HOBOT_VP_HB_VP_CVT_COLOR_H

#include "hb_vp.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a task that converts `srcImg` to the format of `dstImg`, which has the same size. `taskHandle` NULL runs it
 * immediately. Returns 0; HB_SYS_INVALID_ARGUMENT for NULL; the codes of hbDSPRpcV2, and with `taskHandle` NULL the
 * op's result.
 */
int32_t hbVPCvtColor(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg);

#ifdef __cplusplus
}
#endif

#endif
