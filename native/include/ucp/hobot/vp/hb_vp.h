/**
 * hbVP*: images of the S series, and declarations shared by its op headers.
 *
 * Source: VP operator manual (J6 OE 3.0.17), hbVPImage; the numbers are those of the CV ops.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_H
#define HBRT_HOBOT_VP_HB_VP_H

#include "../hb_ucp.h"
#include "../../../arm/dsp/cv/hb_dsp_cv.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Bytes in device memory: `size` of `memSize` are in use. Emulator: the field order, which public programs do not
 * show.
 */
typedef struct hbVPArray {
  uint64_t phyAddr;
  void *virAddr;
  uint32_t memSize;
  uint32_t size;
} hbVPArray;

#ifdef __cplusplus
}
#endif

#endif
