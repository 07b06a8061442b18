/* The DSP side's log: levels, and records shown by 'hbrt log'.
 *
 * Source: DSP development guide (J5 OE), 10.2.3.3.5, for hb_dsp_set_log_level and HB_DSP_LOG_ERROR.
 * Emulator: the values, and the calls that write records.
 */
#ifndef HB_DSP_LOG_H
#define HB_DSP_LOG_H

#include "hbrt/site.h"

enum {
  HB_DSP_LOG_NONE = 0,
  HB_DSP_LOG_DEBUG = 1,
  HB_DSP_LOG_INFO = 2,
  HB_DSP_LOG_WARNING = 3,
  HB_DSP_LOG_ERROR = 4,
  HB_DSP_LOG_FATAL = 5
};

HBRT_BEGIN

/* Show records of this level and above; HB_DSP_LOG_NONE shows none. Returns 0, or HB_DSP_INVALID_ARGUMENT. */
int hb_dsp_set_log_level(int level);

/* Write a record, formatted as by printf. */
void hb_dsp_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

HBRT_END

#define DSP_ERR(...) hb_dsp_log(HB_DSP_LOG_ERROR, __VA_ARGS__)
#define DSP_WARN(...) hb_dsp_log(HB_DSP_LOG_WARNING, __VA_ARGS__)
#define DSP_INFO(...) hb_dsp_log(HB_DSP_LOG_INFO, __VA_ARGS__)
#define DSP_DBG(...) hb_dsp_log(HB_DSP_LOG_DEBUG, __VA_ARGS__)

#endif /* HB_DSP_LOG_H */
