/* Print vectors: an image's `qprintf_V("x = %d\n", x)` prints the 32 words of x, the last one first.
 *
 * `%` may be followed by: `m`, to print the elements selected by the mask, each with the index of its first byte;
 * `(N)`, to print N words per line; then a printf conversion for a word, or two or four of `d` and `u` for its halves
 * and bytes. Emulator: the caller's registers are not known here, so qprintf_V_all and qprintf_R_all only print a
 * message, and the forms for assembly code (qprintf_asm.h) are missing.
 *
 * Source: the header of this name in Hexagon SDKs, for names and forms, https://github.com/peyer/qcom_hexagon_sdk
 */
#ifndef HBRT_HEXAGON_QPRINTF_H
#define HBRT_HEXAGON_QPRINTF_H

#include <stdlib.h>

#include "hexagon_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A mask has one bit per byte of half a vector; the bit of an element's lowest byte decides. */
#define QPRINTF_MASK_ALL -1ull
#define QPRINTF_MASK_NONE 0ull
#define QPRINTF_MASK_EVEN_8 0x5555555555555555ull
#define QPRINTF_MASK_ODD_8 0xaaaaaaaaaaaaaaaaull
#define QPRINTF_MASK_EVEN_16 0x3333333333333333ull
#define QPRINTF_MASK_ODD_16 0xccccccccccccccccull
#define QPRINTF_MASK_EVEN_32 0x0f0f0f0f0f0f0f0full
#define QPRINTF_MASK_ODD_32 0xf0f0f0f0f0f0f0f0ull

/* Set the masks of bytes 64 to 127, and of 0 to 63; initially all bits are set. */
void qprintf_set_mask(unsigned long long high, unsigned long long low);
void qprintf_V(const char *msg, HVX_Vector V);
/* Print a predicate's 128 bits as four words, the last one first, regardless of the conversion. */
void qprintf_Q(const char *msg, HVX_VectorPred Q);
void qprintf_V_all(void);
void qprintf_R_all(void);

#ifdef __cplusplus
}
#endif

#endif
