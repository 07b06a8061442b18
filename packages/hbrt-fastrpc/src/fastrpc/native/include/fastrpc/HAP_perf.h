/* Clocks of the DSP side. Emulator: time is the host's; processor cycles are that time multiplied by the clock from
 * HAP_power_get, not an instruction count.
 *
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, for names and types
 */
#ifndef HBRT_FASTRPC_HAP_PERF_H
#define HBRT_FASTRPC_HAP_PERF_H

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

uint64 HAP_perf_get_time_us(void);
/* Ticks of 19.2 MHz. */
uint64 HAP_perf_get_qtimer_count(void);
uint64 HAP_perf_qtimer_count_to_us(uint64 count);
/* The time at the clock of the board's profile, or at the one requested by HAP_power_set: not counted. */
uint64 HAP_perf_get_pcycles(void);
/* Sleep for this many microseconds; returns 0. */
int HAP_timer_sleep(unsigned long long sleep_duration);

#ifdef __cplusplus
}
#endif

#endif
