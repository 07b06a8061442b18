/** Statuses of hbDNN*: the same as on earlier boards. */
#ifndef HBRT_HOBOT_DNN_HB_DNN_STATUS_H
#define HBRT_HOBOT_DNN_HB_DNN_STATUS_H

#include "../hb_ucp_status.h"

#endif
