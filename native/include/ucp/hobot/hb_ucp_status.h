/**
 * Statuses of hbUCP*: those of the underlying memory, model and DSP calls. Emulator: the vendor's numbers are not
 * public.
 */
#ifndef HBRT_HOBOT_HB_UCP_STATUS_H
#define HBRT_HOBOT_HB_UCP_STATUS_H

#include "../../arm/dnn/hb_dnn_status.h"
#include "../../arm/dsp/hb_dsp_status.h"

#define HB_UCP_SUCCESS 0

#endif
