/**
 * hbVP*: images of the S series, and what the headers of its ops share.
 *
 * Source: VP operator manual (J6 OE 3.0.17), hbVPImage; numbers are those of the CV ops.
 */
#ifndef HBRT_HOBOT_VP_HB_VP_H
#define HBRT_HOBOT_VP_HB_VP_H

#include "../hb_ucp.h"
#include "../../../arm/dsp/cv/hb_dsp_cv.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes in device memory: `size` of `memSize` are in use. Emulator: the order of the fields, which public programs do not show. */
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
