/** hbDSPAddrMap: in hb_dsp.h. */
#ifndef HBRT_HOBOT_DSP_HB_DSP_ADDR_MAP_H
#define HBRT_HOBOT_DSP_HB_DSP_ADDR_MAP_H

#include "hb_dsp.h"

#endif
