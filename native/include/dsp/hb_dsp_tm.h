/* The tile manager: tiles in the two banks of TCM.
 *
 * Source: DSP development guide (J5 OE), 10.2.3.3.5, for the calls and the colors' names.
 * Emulator: error values and the colors' numbers. The usable size of a bank, about 103 KiB, is from the sample guide.
 */
#ifndef HB_DSP_TM_H
#define HB_DSP_TM_H

#include <stdint.h>

#include "hbrt/site.h"

#define HB_DSP_DRAM0_POOL_SIZE (103 * 1024)
#define HB_DSP_DRAM1_POOL_SIZE (103 * 1024)

#define XV_MEM_BANK_COLOR_0 0
#define XV_MEM_BANK_COLOR_1 1
#define XV_MEM_BANK_COLOR_ANY 0xff

#define XVTM_ERROR 0 /* no address: what xvAllocateBuffer returns when there is no room */
#define XVTM_SUCCESS 0
#define XVTM_FREE_ERROR (-1)

HBRT_BEGIN

typedef struct xvTileManager xvTileManager;

/* Give the tile manager its memory: one array per bank, aligned to 64 bytes; NULL to use the emulator's own memory.
 * Optional. Returns 0, or HB_DSP_INVALID_ARGUMENT for an unaligned array. */
int hb_dsp_init_global_tm(void *pool0, int32_t size0, void *pool1, int32_t size1);
int hbrt_dsp_init_global_tm(const char *site, void *pool0, int32_t size0, void *pool1, int32_t size1);
#define hb_dsp_init_global_tm(...) hbrt_dsp_init_global_tm(HBRT_SITE, __VA_ARGS__)

/* Allocate an aligned tile of this many bytes in the bank of a color; NULL if there is no room or an argument is
 * wrong. */
void *xvAllocateBuffer(xvTileManager *tm, int32_t size, int32_t color, int32_t align);
void *hbrt_xvAllocateBuffer(const char *site, xvTileManager *tm, int32_t size, int32_t color, int32_t align);
#define xvAllocateBuffer(...) hbrt_xvAllocateBuffer(HBRT_SITE, __VA_ARGS__)

/* Free a tile. Returns XVTM_SUCCESS, or XVTM_FREE_ERROR. */
int32_t xvFreeBuffer(xvTileManager *tm, const void *tile);
int32_t hbrt_xvFreeBuffer(const char *site, xvTileManager *tm, const void *tile);
#define xvFreeBuffer(...) hbrt_xvFreeBuffer(HBRT_SITE, __VA_ARGS__)

/* The error message of the last failed runtime call; empty if none has failed in this task. */
const char *xvGetErrorInfo(xvTileManager *tm);

HBRT_END
#endif /* HB_DSP_TM_H */
