/**
 * hbVPResize.
 *
 * Source: VP operator manual (J6 OE 3.0.17), Resize.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_RESIZE_H
#define HBRT_HOBOT_VP_HB_VP_RESIZE_H

#include "hb_vp.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Create a task that scales `srcImg` to the size of `dstImg`. `taskHandle` NULL runs it immediately.
 * Returns 0; HB_SYS_INVALID_ARGUMENT for NULL; the codes of hbDSPRpcV2, and with `taskHandle` NULL the op's result.
 */
int32_t hbVPResize(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg,
                   hbVPInterpolationType interpolation);

#ifdef __cplusplus
}
#endif

#endif
