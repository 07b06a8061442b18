/**
 * Parameter structures of the 25 CV ops: what a program writes into the input block of hbDSPRpc.
 *
 * Addresses are physical. docs/cv-ops.md has each op's rules and formulas.
 * Emulator: the structures and the numbers, with the field names of the next chip's public manual (J6).
 */
#ifndef HBRT_DSP_CV_HB_DSP_CV_H
#define HBRT_DSP_CV_HB_DSP_CV_H

#include <stdint.h>

#include "hb_vp.h"

/** An image in device memory, 56 bytes. */
typedef struct {
  uint8_t imageFormat; /* hbVPImageFormat */
  uint8_t imageType; /* hbVPImageType: U8C1 for NV12, U8C3 for RGB and BGR; any one-channel type for Y */
  int32_t width; /* Pixels per row, 1..32766; even for NV12 */
  int32_t height; /* Rows, 1..32766; even for NV12 */
  int32_t stride; /* Bytes from one row to the next: at least the size of a row, and a multiple of the pixel size */
  void *dataVirAddr; /* Address in the caller's process, for its own use; the DSP does not read it */
  uint64_t dataPhyAddr; /* Physical address of the first pixel, a multiple of the element size */
  void *uvVirAddr; /* As dataVirAddr, for the second plane */
  uint64_t uvPhyAddr; /* NV12: physical address of the plane of UV pairs; it may be anywhere */
  int32_t uvStride; /* NV12: bytes from one row of pairs to the next; even, at least `width` */
} hbVPImage;

/** The weights of a filter, or the mask of a morphological op, in device memory: 24 bytes. */
typedef struct {
  int32_t width; /* Columns */
  int32_t height; /* Rows */
  int32_t dataType; /* hbVPImageType: F32C1 for weights, U8C1 for a mask, where 0 means false */
  uint64_t dataPhyAddr; /* Physical address of the elements, row by row, without padding */
} hbVPFilterKernel;

/** A region of src, 16 bytes, with inclusive corners like the DNN runtime's hbDNNRoi. */
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
  double sigmaColor; /* Standard deviation over value differences, above 0 */
  double sigmaSpace; /* Standard deviation over pixel distances, above 0 */
  int32_t kernelSize; /* Diameter of the disc in pixels, odd, 3..31 */
  int32_t borderType; /* HB_VP_BORDER_*; constant is 0 */
} hbDSPCvBilateralFilterParam;

/** Input block of BoxFilter, 136 bytes. Y U8C1, RGB or BGR; dst as src, or Y S32C1 for a sum without saturation. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t kernelHeight; /* Rows of the window, 1..127 */
  int32_t kernelWidth; /* Columns of the window, 1..127 */
  int32_t pointLocX; /* Window column that lies on the pixel; -1 for width / 2 */
  int32_t pointLocY; /* Window row that lies on the pixel; -1 for height / 2 */
  int32_t normalize; /* 1 for the mean, 0 for the sum */
  int32_t borderType; /* HB_VP_BORDER_*; constant is 0 */
} hbDSPCvBoxFilterParam;

/** Input block of Canny, 144 bytes. Y U8C1 to Y U8C1, 255 on an edge and 0 elsewhere. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double threshold1; /* An edge continues where the gradient is above this; 0 or more */
  double threshold2; /* An edge begins where the gradient is above this; at least threshold1 */
  int32_t kernelSize; /* Aperture of the derivatives: 3, 5 or 7 */
  int32_t norm; /* HB_VP_NORM_L1: |dx| + |dy|; HB_VP_NORM_L2: sqrt(dx^2 + dy^2) */
  int32_t overlap; /* Halo of a tile on the chip, 0..1024. It has no effect here, where the whole image is one tile */
  int32_t borderType; /* HB_VP_BORDER_REPLICATE */
} hbDSPCvCannyParam;

/** Input block of CornerHarris, 136 bytes. Y U8C1 to Y S32C1, or F32C1. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double sensitivity; /* k, above 0, up to 0.25 */
  int32_t blockSize; /* Side of the window over which the products of derivatives are averaged, odd, 1..31 */
  int32_t kernelSize; /* Aperture of the derivatives: 3, 5 or 7 */
  int32_t borderType; /* HB_VP_BORDER_*; constant is 0 */
} hbDSPCvCornerHarrisParam;

/**
 * Input block of CvtColor, 112 bytes: the formats of the two images select the conversion. Both sizes must be
 * equal.
 */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
} hbDSPCvCvtColorParam;

/** Input block of Dilate; the mask's element (width / 2, height / 2) lies on the pixel. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernel; /* Mask of U8C1, sides 1..31, not all 0 */
  int32_t borderType; /* HB_VP_BORDER_*; with constant, pixels outside the image never win */
} hbDSPCvDilateParam;

/** Input block of EqualizeHist, 112 bytes. Y U8C1 to Y U8C1; dst may be src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
} hbDSPCvEqualizeHistParam;

/** Input block of Erode; the mask's element ((width - 1) / 2, (height - 1) / 2) lies on the pixel. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernel; /* Mask of U8C1, sides 1..31, not all 0 */
  int32_t borderType; /* HB_VP_BORDER_*; with constant, pixels outside the image never win */
} hbDSPCvErodeParam;

/** Input block of Filter2D, 160 bytes. Y U8C1 to U8C1, S16C1 or F32C1; RGB or BGR to the same. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernel; /* Weights of F32C1, sides 1..31, finite */
  double delta; /* Added to each sum, finite */
  int32_t pointLocX; /* Kernel column that lies on the pixel; -1 for width / 2 */
  int32_t pointLocY; /* Kernel row that lies on the pixel; -1 for height / 2 */
  int32_t borderType; /* HB_VP_BORDER_*; constant is 0 */
} hbDSPCvFilter2DParam;

/** Input block of Flip, 120 bytes. Any format; dst as src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t flipCode; /* HB_VP_FLIP_VERTICAL, HB_VP_FLIP_HORIZONTAL or HB_VP_FLIP_BOTH */
} hbDSPCvFlipParam;

/** Input block of GaussianBlur, 120 bytes. Y U8C1, RGB or BGR; dst as src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t kernelSize; /* 3 or 5; the weights are fixed */
  int32_t borderType; /* HB_VP_BORDER_*; constant is 0 */
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
  int8_t maskWidth; /* Side of the square, odd, 1..127 */
} hbDSPCvMedianBlurParam;

/** Input block of PyrDown: dst has (width + 1) / 2 x (height + 1) / 2 pixels. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t interpolation; /* HB_VP_INTER_GAUSSIAN or HB_VP_INTER_LINEAR */
} hbDSPCvPyrDownParam;

/** Input block of PyrUp: dst has 2 * width x 2 * height pixels. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t interpolation; /* HB_VP_INTER_GAUSSIAN or HB_VP_INTER_LINEAR */
} hbDSPCvPyrUpParam;

/**
 * Input block of Remap, 144 bytes. Y U8C1, S16C1 or F32C1, RGB, BGR or NV12; dst has src's format and the map's
 * size.
 */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  uint64_t mapPhyAddr; /* Physical address of mapHeight rows of mapWidth pairs x, y, without padding */
  int32_t mapWidth; /* Pairs per row: dst.width */
  int32_t mapHeight; /* Rows: dst.height */
  int32_t dataType; /* hbVPImageType: F64C2, or F32C2, which needs no conversion */
  int32_t interpolation; /* HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR */
  int32_t borderType; /* HB_VP_BORDER_* */
  int32_t borderValue; /* The value outside src with a constant border, 0..255, for every channel */
} hbDSPCvRemapParam;

/** Input block of Resize, 120 bytes. Y U8C1, S16C1 or F32C1, RGB, BGR or NV12; dst has src's format and any size. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t interpolation; /* HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR */
} hbDSPCvResizeParam;

/** Input block of RoiResize, 144 bytes. Y U8C1, RGB, BGR or NV12. `dst` describes the result of the first region. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  uint64_t roiPhyAddr; /* Physical address of hbDSPCvRoi[roiCount], a multiple of 4 */
  int64_t dstStep; /* Bytes from one result's first pixel to the next result's; at least stride * height */
  int64_t dstUvStep; /* NV12: like dstStep, for the UV planes; at least uvStride * height / 2 */
  int32_t roiCount; /* 1..256 */
  int32_t interpolation; /* HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR */
} hbDSPCvRoiResizeParam;

/** Input block of Rotate, 120 bytes. Any format; dst as src, with sides swapped for a quarter turn. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  int32_t rotateCode; /* HB_VP_ROTATE_90_CLOCKWISE, HB_VP_ROTATE_180 or HB_VP_ROTATE_90_COUNTER_CLOCKWISE */
} hbDSPCvRotateParam;

/** Input block of SepFilter2D, 184 bytes. Formats as for Filter2D. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  hbVPFilterKernel kernelX; /* Weights along a row, F32C1: width 1..31, height 1 */
  hbVPFilterKernel kernelY; /* Weights along a column, F32C1: width 1, height 1..31 */
  double delta; /* Added to each sum, finite */
  int32_t pointLocX; /* Element of kernelX that lies on the pixel; -1 for width / 2 */
  int32_t pointLocY; /* Element of kernelY that lies on the pixel; -1 for height / 2 */
  int32_t borderType; /* HB_VP_BORDER_*; constant is 0 */
} hbDSPCvSepFilter2DParam;

/** Input block of Sobel, 144 bytes. Y U8C1 to Y S16C1, with saturation. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double scale; /* Each derivative is multiplied by this; finite */
  double delta; /* Then this is added; finite */
  int32_t dx; /* Order of the derivative along a row, 0..2 */
  int32_t dy; /* Order of the derivative along a column, 0..2; at least one of the two is not 0 */
  int32_t kernelSize; /* 1, 3, 5 or 7; 1 means 3 along an axis that is derived, and no smoothing along the other */
  int32_t borderType; /* HB_VP_BORDER_*; constant is 0 */
} hbDSPCvSobelParam;

/** Input block of Threshold, 136 bytes. Y U8C1, S16C1 or F32C1; dst as src, and may be src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double thresh; /* The threshold that a pixel must exceed: must be in the range of its type; an integer for integer
                    types; rounded for F32 */
  double maxVal; /* The value that BINARY and BINARY_INV write, by the same rule; the other types ignore it */
  int32_t type; /* HB_VP_THRESH_* */
} hbDSPCvThresholdParam;

/** Input block of Transpose, 112 bytes. Any format; dst as src, with sides swapped. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
} hbDSPCvTransposeParam;

/** Input block of WarpAffine, 176 bytes. Y U8C1, RGB, BGR or NV12; dst has src's format and any size. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double transformMatrix[6]; /* M, 2 x 3, in row order: maps a point of src to dst. The magnitude of its determinant is
                                1e-12 or more */
  int32_t interpolation; /* HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR */
  int32_t borderType; /* HB_VP_BORDER_* */
  int32_t borderValue; /* The value outside src with a constant border, 0..255, for every channel */
} hbDSPCvWarpAffineParam;

/** Input block of WarpPerspective, 200 bytes. Like WarpAffine, but the matrix maps a point of dst to src. */
typedef struct {
  hbVPImage src;
  hbVPImage dst;
  double transformMatrix[9]; /* M, 3 x 3, in row order, finite, last row not all 0 */
  int32_t interpolation; /* HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR */
  int32_t borderType; /* HB_VP_BORDER_* */
  int32_t borderValue; /* The value outside src with a constant border, 0..255, for every channel */
} hbDSPCvWarpPerspectiveParam;

#endif
