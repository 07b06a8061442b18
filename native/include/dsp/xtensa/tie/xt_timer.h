/* The core's cycle counter: modeled cycles of DMA and vector instructions (docs/c-images.md).
 *
 * Source: DSP development guide (J5 OE), 10.2.3.3.4, for the header, XT_RSR_CCOUNT and HB_DSP_TIME_STAMP.
 */
#ifndef HBRT_XTENSA_XT_TIMER_H
#define HBRT_XTENSA_XT_TIMER_H

#include <stdint.h>

#include "../../hbrt/site.h"

HBRT_BEGIN
/* The low 32 bits of the counter, as in the register: they wrap every 6.6 modeled seconds. */
uint32_t XT_RSR_CCOUNT(void);
HBRT_END

#define HB_DSP_TIME_STAMP(cyc_cnt) (cyc_cnt) = XT_RSR_CCOUNT()
#ifndef TIME_STAMP
#define TIME_STAMP(cyc_cnt) (cyc_cnt) = XT_RSR_CCOUNT()
#endif

#endif /* HBRT_XTENSA_XT_TIMER_H */
