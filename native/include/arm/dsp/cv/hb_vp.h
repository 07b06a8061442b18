/** Numbers of the CV ops. Emulator: all but the range of the commands, which is public. */
#ifndef HBRT_DSP_CV_HB_VP_H
#define HBRT_DSP_CV_HB_VP_H

/** The ops' command numbers. */
typedef enum {
  HB_DSP_RPC_CMD_CV_BILATERAL_FILTER = 0x800,
  HB_DSP_RPC_CMD_CV_BOX_FILTER = 0x801,
  HB_DSP_RPC_CMD_CV_CANNY = 0x802,
  HB_DSP_RPC_CMD_CV_CORNER_HARRIS = 0x803,
  HB_DSP_RPC_CMD_CV_CVT_COLOR = 0x804,
  HB_DSP_RPC_CMD_CV_DILATE = 0x805,
  HB_DSP_RPC_CMD_CV_EQUALIZE_HIST = 0x806,
  HB_DSP_RPC_CMD_CV_ERODE = 0x807,
  HB_DSP_RPC_CMD_CV_FILTER2D = 0x808,
  HB_DSP_RPC_CMD_CV_FLIP = 0x809,
  HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR = 0x80a,
  HB_DSP_RPC_CMD_CV_INTEGRAL = 0x80b,
  HB_DSP_RPC_CMD_CV_MEDIAN_BLUR = 0x80c,
  HB_DSP_RPC_CMD_CV_PYR_DOWN = 0x80d,
  HB_DSP_RPC_CMD_CV_PYR_UP = 0x80e,
  HB_DSP_RPC_CMD_CV_REMAP = 0x80f,
  HB_DSP_RPC_CMD_CV_RESIZE = 0x810,
  HB_DSP_RPC_CMD_CV_ROI_RESIZE = 0x811,
  HB_DSP_RPC_CMD_CV_ROTATE = 0x812,
  HB_DSP_RPC_CMD_CV_SEP_FILTER2D = 0x813,
  HB_DSP_RPC_CMD_CV_SOBEL = 0x814,
  HB_DSP_RPC_CMD_CV_THRESHOLD = 0x815,
  HB_DSP_RPC_CMD_CV_TRANSPOSE = 0x816,
  HB_DSP_RPC_CMD_CV_WARP_AFFINE = 0x817,
  HB_DSP_RPC_CMD_CV_WARP_PERSPECTIVE = 0x818
} hbDSPCvCmd;

/** Meaning of an image's channels. No CV op accepts YUV444 or YUV420. */
typedef enum {
  HB_VP_IMAGE_FORMAT_Y = 1,
  HB_VP_IMAGE_FORMAT_NV12 = 2,
  HB_VP_IMAGE_FORMAT_RGB = 3,
  HB_VP_IMAGE_FORMAT_BGR = 4,
  HB_VP_IMAGE_FORMAT_YUV444 = 5,
  HB_VP_IMAGE_FORMAT_YUV444_P = 6,
  HB_VP_IMAGE_FORMAT_YUV420 = 7
} hbVPImageFormat;

/** Element type and channel count of a plane; the last two are those of a remap's map. */
typedef enum {
  HB_VP_IMAGE_TYPE_U8C1 = 1,
  HB_VP_IMAGE_TYPE_U8C3 = 2,
  HB_VP_IMAGE_TYPE_S16C1 = 3,
  HB_VP_IMAGE_TYPE_S32C1 = 4,
  HB_VP_IMAGE_TYPE_F32C1 = 5,
  HB_VP_IMAGE_TYPE_F64C2 = 6,
  HB_VP_IMAGE_TYPE_F32C2 = 7
} hbVPImageType;

/** Treatment of pixels outside an image. */
typedef enum {
  HB_VP_BORDER_CONSTANT = 0,
  HB_VP_BORDER_REPLICATE = 1
} hbVPBorderType;

/** Interpolation. */
typedef enum {
  HB_VP_INTER_NEAREST = 0,
  HB_VP_INTER_LINEAR = 1,
  HB_VP_INTER_GAUSSIAN = 2
} hbVPInterpolationType;

/** Norm of a gradient. */
typedef enum {
  HB_VP_NORM_L1 = 1,
  HB_VP_NORM_L2 = 2
} hbVPNormType;

/** How a threshold changes a pixel. */
typedef enum {
  HB_VP_THRESH_BINARY = 0,
  HB_VP_THRESH_BINARY_INV = 1,
  HB_VP_THRESH_TRUNC = 2,
  HB_VP_THRESH_TOZERO = 3,
  HB_VP_THRESH_TOZERO_INV = 4
} hbVPThresholdType;

/** Turns. */
typedef enum {
  HB_VP_ROTATE_90_CLOCKWISE = 0,
  HB_VP_ROTATE_180 = 1,
  HB_VP_ROTATE_90_COUNTER_CLOCKWISE = 2
} hbVPRotateCode;

/** Axes of a flip. */
typedef enum {
  HB_VP_FLIP_VERTICAL = 0,
  HB_VP_FLIP_HORIZONTAL = 1,
  HB_VP_FLIP_BOTH = -1
} hbVPFlipCode;

#endif
