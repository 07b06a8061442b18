/**
 * hbVPWarpAffine.
 *
 * Source: VP operator manual (J6 OE 3.0.17), WarpAffine; the parameter's fields are those set by public programs.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_WARP_AFFINE_H
#define HBRT_HOBOT_VP_HB_VP_WARP_AFFINE_H

#include "hb_vp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a plane is transformed. Emulator: the field order, and the types of the last two. */
typedef struct hbVPAffineParam {
  float transformMatrix[6]; /* 2 x 3, in row order: maps a point of the source to one of the result */
  int8_t interpolation;     /* hbVPInterpolationType: nearest or linear */
  int8_t borderType;        /* hbVPBorderType */
  int32_t borderValue;      /* value outside the source, 0..255; 128 in the UV plane */
  int8_t isInverse;         /* not 0: the matrix maps a point of the result to one of the source */
} hbVPAffineParam;

/**
 * Create a task that transforms `srcImg`. `taskHandle` NULL runs it immediately.
 * Returns 0; HB_SYS_INVALID_ARGUMENT for NULL; the codes of hbDSPRpcV2, and with `taskHandle` NULL the op's result.
 */
int32_t hbVPWarpAffine(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg,
                       hbVPAffineParam const *affineParam);

#ifdef __cplusplus
}
#endif

#endif
