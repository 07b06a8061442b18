/* The packaged CV ops. Source: DSP development guide (J5 OE), 10.2.3.3.5, for the macro and its use as a statement. */
#ifndef HB_DSP_CV_CORE_H
#define HB_DSP_CV_CORE_H

#include "../hbrt/site.h"

HBRT_BEGIN
int hbrt_dsp_register_cv_all(const char *site);
HBRT_END

#define HB_DSP_REGISTER_CV_ALL ((void)hbrt_dsp_register_cv_all(HBRT_SITE))

#endif /* HB_DSP_CV_CORE_H */
