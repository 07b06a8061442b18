/** Memory under the earlier boards' names, for programs that include from /usr/include/hobot itself. */
#ifndef HBRT_HOBOT_HB_SYS_H
#define HBRT_HOBOT_HB_SYS_H

#include "hb_ucp_sys.h"

#ifndef HBRT_DNN_HB_SYS_H
typedef hbUCPSysMem hbSysMem;
#endif

#endif
