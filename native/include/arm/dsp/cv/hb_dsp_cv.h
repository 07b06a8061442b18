/**
 * Parameter structures of the 25 CV ops: what a program writes into the input block of hbDSPRpc.
 *
 * Addresses are physical. docs/cv-ops.md has each op's rules and formulas.
 * Emulator: the structures and the numbers, in the field names of the next chip's public manual (J6).
 */
#ifndef HBRT_DSP_CV_HB_DSP_CV_H
#define HBRT_DSP_CV_HB_DSP_CV_H

#include <stdint.h>

#include "hb_vp.h"

/** An image in device memory, 56 bytes. */
typedef struct {
  uint8_t imageFormat;
  uint8_t imageType;
  int32_t width;
  int32_t height;
  int32_t stride;
  void *dataVirAddr;
  uint64_t dataPhyAddr;
  void *uvVirAddr;
  uint64_t uvPhyAddr;
  int32_t uvStride;
} hbVPImage;

/** The weights of a filter, or the mask of a morphology, in device memory: 24 bytes. */
typedef struct {
  int32_t width;
  int32_t height;
  int32_t dataType;
  uint64_t dataPhyAddr;
} hbVPFilterKernel;

/** A region of src, 16 bytes, with the corners of the DNN runtime's hbDNNRoi: all four are inside. */
typedef struct {
  int32_t left;
  int32_t top;
  int32_t right;
  int32_t bottom;
} hbDSPCvRoi;

/** Input block of BilateralFilter, 136 bytes. Y U8C1, RGB or BGR; dst as src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double sigmaColor;
  double sigmaSpace;
  int32_t kernelSize;
  int32_t borderType;
} hbDSPCvBilateralFilterParam;

/** Input block of BoxFilter, 136 bytes. Y U8C1, RGB or BGR; dst as src, or Y S32C1 for a sum that is not cut. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t kernelHeight;
  int32_t kernelWidth;
  int32_t pointLocX;
  int32_t pointLocY;
  int32_t normalize;
  int32_t borderType;
} hbDSPCvBoxFilterParam;

/** Input block of Canny, 144 bytes. Y U8C1 to Y U8C1, 255 on an edge and 0 elsewhere. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double threshold1;
  double threshold2;
  int32_t kernelSize;
  int32_t norm;
  int32_t overlap;
  int32_t borderType;
} hbDSPCvCannyParam;

/** Input block of CornerHarris, 136 bytes. Y U8C1 to Y S32C1, or F32C1. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double sensitivity;
  int32_t blockSize;
  int32_t kernelSize;
  int32_t borderType;
} hbDSPCvCornerHarrisParam;

/** Input block of CvtColor, 112 bytes: the formats of the two images say which conversion. Sizes are the same. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
} hbDSPCvCvtColorParam;

/** Input block of Dilate; the mask's element (width / 2, height / 2) lies on the pixel. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernel;
  int32_t borderType;
} hbDSPCvDilateParam;

/** Input block of EqualizeHist, 112 bytes. Y U8C1 to the same; dst may be src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
} hbDSPCvEqualizeHistParam;

/** Input block of Erode; the mask's element ((width - 1) / 2, (height - 1) / 2) lies on the pixel. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernel;
  int32_t borderType;
} hbDSPCvErodeParam;

/** Input block of Filter2D, 160 bytes. Y U8C1 to U8C1, S16C1 or F32C1; RGB or BGR to the same. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernel;
  double delta;
  int32_t pointLocX;
  int32_t pointLocY;
  int32_t borderType;
} hbDSPCvFilter2DParam;

/** Input block of Flip, 120 bytes. Any kind; dst as src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t flipCode;
} hbDSPCvFlipParam;

/** Input block of GaussianBlur, 120 bytes. Y U8C1, RGB or BGR; dst as src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t kernelSize;
  int32_t borderType;
} hbDSPCvGaussianBlurParam;

/** Input block of Integral, 112 bytes. Y U8C1 of W x H to Y S32C1 of (W + 1) x (H + 1), at most 8421504 pixels. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
} hbDSPCvIntegralParam;

/** Input block of MedianBlur, 120 bytes. Y U8C1, RGB or BGR; dst as src. The border is replicated. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int8_t maskWidth;
} hbDSPCvMedianBlurParam;

/** Input block of PyrDown: dst has (width + 1) / 2 x (height + 1) / 2 pixels. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t interpolation;
} hbDSPCvPyrDownParam;

/** Input block of PyrUp: dst has 2 * width x 2 * height pixels. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t interpolation;
} hbDSPCvPyrUpParam;

/** Input block of Remap, 144 bytes. Y U8C1, S16C1 or F32C1, RGB, BGR or NV12; dst as src, of the map's size. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  uint64_t mapPhyAddr;
  int32_t mapWidth;
  int32_t mapHeight;
  int32_t dataType;
  int32_t interpolation;
  int32_t borderType;
  int32_t borderValue;
} hbDSPCvRemapParam;

/** Input block of Resize, 120 bytes. Y U8C1, S16C1 or F32C1, RGB, BGR or NV12; dst has its kind and any size. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t interpolation;
} hbDSPCvResizeParam;

/** Input block of RoiResize, 144 bytes. Y U8C1, RGB, BGR or NV12. `dst` describes the result of the first region. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  uint64_t roiPhyAddr;
  int64_t dstStep;
  int64_t dstUvStep;
  int32_t roiCount;
  int32_t interpolation;
} hbDSPCvRoiResizeParam;

/** Input block of Rotate, 120 bytes. Any kind; dst as src, its sides exchanged by a quarter of a turn. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t rotateCode;
} hbDSPCvRotateParam;

/** Input block of SepFilter2D, 184 bytes. Kinds as Filter2D. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernelX;
  hbVPFilterKernel kernelY;
  double delta;
  int32_t pointLocX;
  int32_t pointLocY;
  int32_t borderType;
} hbDSPCvSepFilter2DParam;

/** Input block of Sobel, 144 bytes. Y U8C1 to Y S16C1, which saturates. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double scale;
  double delta;
  int32_t dx;
  int32_t dy;
  int32_t kernelSize;
  int32_t borderType;
} hbDSPCvSobelParam;

/** Input block of Threshold, 136 bytes. Y U8C1, S16C1 or F32C1; dst as src, and may be src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double thresh;
  double maxVal;
  int32_t type;
} hbDSPCvThresholdParam;

/** Input block of Transpose, 112 bytes. Any kind; dst as src, its sides exchanged. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
} hbDSPCvTransposeParam;

/** Input block of WarpAffine, 176 bytes. Y U8C1, RGB, BGR or NV12; dst has its kind and any size. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double transformMatrix[6];
  int32_t interpolation;
  int32_t borderType;
  int32_t borderValue;
} hbDSPCvWarpAffineParam;

/** Input block of WarpPerspective, 200 bytes. As WarpAffine, but the matrix takes a point of dst to src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double transformMatrix[9];
  int32_t interpolation;
  int32_t borderType;
  int32_t borderValue;
} hbDSPCvWarpPerspectiveParam;

#endif
