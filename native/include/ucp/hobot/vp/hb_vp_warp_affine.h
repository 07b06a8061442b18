/**
 * hbVPWarpAffine.
 *
 * Source: VP operator manual (J6 OE 3.0.17), WarpAffine; the fields of the parameter are those that public programs set.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_WARP_AFFINE_H
#define HBRT_HOBOT_VP_HB_VP_WARP_AFFINE_H

#include "hb_vp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a plane is transformed. Emulator: the fields' order, and the types of the last two. */
typedef struct hbVPAffineParam {
  float transformMatrix[6]; /* 2 x 3, row after row: takes a point of the source to one of the result */
  int8_t interpolation;     /* hbVPInterpolationType: nearest or linear */
  int8_t borderType;        /* hbVPBorderType */
  int32_t borderValue;      /* outside the source, 0..255; 128 in the UV plane */
  int8_t isInverse;         /* not 0: the matrix takes a point of the result to one of the source */
} hbVPAffineParam;

/** Make a task that transforms `srcImg`. `taskHandle` NULL runs it at once.
 * Returns 0; HB_SYS_INVALID_ARGUMENT for NULL; as hbDSPRpcV2, and with `taskHandle` NULL what the op came to. */
int32_t hbVPWarpAffine(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg,
                       hbVPAffineParam const *affineParam);

#ifdef __cplusplus
}
#endif

#endif
