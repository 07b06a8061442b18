/** hbVP*: image ops of the S series, as tasks of the CV ops on a DSP core. */
#include "ucp.h"

#include "hobot/vp/hb_vp_cvt_color.h"
#include "hobot/vp/hb_vp_gaussian_blur.h"
#include "hobot/vp/hb_vp_jpeg_codec.h"
#include "hobot/vp/hb_vp_resize.h"
#include "hobot/vp/hb_vp_warp_affine.h"

#include <stdio.h>

#define API __attribute__((visibility("default")))

/* The block that holds the result: the one of its first plane, where the op looks. */
static hbUCPSysMem block_of(const hbVPImage *image) {
  uint64_t size = image->stride > 0 && image->height > 0 ? (uint64_t)image->stride * (uint64_t)image->height : 0;
  return (hbUCPSysMem){image->dataPhyAddr, image->dataVirAddr, size};
}

static int32_t missing(const char *function) {
  return hbrt_ucp_refused(HB_SYS_INVALID_ARGUMENT, "%s: an image or a parameter is NULL.", function);
}

/* Create the task of an op whose parameters follow its two images. */
#define OP(command, param)                                                                             \
  do {                                                                                                 \
    hbUCPSysMem output = block_of(dstImg);                                                             \
    return ASKED(hbrt_ucp_op(taskHandle, &(param), sizeof(param), &output, HB_DSP_RPC_CMD_CV_##command)); \
  } while (0)

API int32_t hbVPResize(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg,
                       hbVPInterpolationType interpolation) {
  if (!dstImg || !srcImg) return missing("hbVPResize");
  hbDSPCvResizeParam param = {.src = *srcImg, .dst = *dstImg, .interpolation = (int32_t)interpolation};
  OP(RESIZE, param);
}

API int32_t hbVPCvtColor(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg) {
  if (!dstImg || !srcImg) return missing("hbVPCvtColor");
  hbDSPCvCvtColorParam param = {.src = *srcImg, .dst = *dstImg};
  OP(CVT_COLOR, param);
}

/* The inverse of a matrix; a matrix that has no inverse is returned unchanged, since the op rejects it. */
static void invert(double *m) {
  double determinant = m[0] * m[4] - m[1] * m[3];
  if (determinant == 0) return;
  double a = m[4] / determinant, b = -m[1] / determinant, d = -m[3] / determinant, e = m[0] / determinant;
  double c = -(a * m[2] + b * m[5]), f = -(d * m[2] + e * m[5]);
  m[0] = a, m[1] = b, m[2] = c, m[3] = d, m[4] = e, m[5] = f;
}

API int32_t hbVPWarpAffine(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg,
                           hbVPAffineParam const *affineParam) {
  if (!dstImg || !srcImg || !affineParam) return missing("hbVPWarpAffine");
  hbDSPCvWarpAffineParam param = {.src = *srcImg,
                                  .dst = *dstImg,
                                  .interpolation = affineParam->interpolation,
                                  .borderType = affineParam->borderType,
                                  .borderValue = affineParam->borderValue};
  for (int at = 0; at < 6; at++) param.transformMatrix[at] = affineParam->transformMatrix[at];
  if (affineParam->isInverse) invert(param.transformMatrix);
  OP(WARP_AFFINE, param);
}

API int32_t hbVPGaussianBlur(hbUCPTaskHandle_t *taskHandle, hbVPImage *dstImg, hbVPImage const *srcImg,
                             hbVPGaussianBlurParam const *gaussianParam) {
  if (!dstImg || !srcImg || !gaussianParam) return missing("hbVPGaussianBlur");
  hbDSPCvGaussianBlurParam param = {.src = *srcImg,
                                    .dst = *dstImg,
                                    .kernelSize = gaussianParam->kernelSize,
                                    .borderType = gaussianParam->borderType};
  OP(GAUSSIAN_BLUR, param);
}

/* Functions that are not implemented. */
#define NOT_SUPPORTED(name, ...)                                                                                   \
  API int32_t name(__VA_ARGS__) {                                                                                  \
    fprintf(stderr, "hbrt: " #name " is not supported: there is no JPU here. Decode and encode with OpenCV.\n"); \
    return HB_SYS_NOT_SUPPORTED;                                                                                   \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOT_SUPPORTED(hbVPCreateJPEGEncContext, hbVPJPEGContext *context, hbVPJPEGEncParam *param)
NOT_SUPPORTED(hbVPReleaseJPEGEncContext, hbVPJPEGContext context)
NOT_SUPPORTED(hbVPJPEGEncode, hbUCPTaskHandle_t *taskHandle, hbVPImage const *srcImg, hbVPJPEGContext context)
NOT_SUPPORTED(hbVPGetJPEGEncOutputBuffer, hbVPArray *outBuf, hbUCPTaskHandle_t taskHandle)
NOT_SUPPORTED(hbVPCreateJPEGDecContext, hbVPJPEGContext *context, hbVPJPEGDecParam *param)
NOT_SUPPORTED(hbVPReleaseJPEGDecContext, hbVPJPEGContext context)
NOT_SUPPORTED(hbVPJPEGDecode, hbUCPTaskHandle_t *taskHandle, hbVPArray const *srcBuf, hbVPJPEGContext context)
NOT_SUPPORTED(hbVPGetJPEGDecOutputBuffer, hbVPImage *outImg, hbUCPTaskHandle_t taskHandle)
