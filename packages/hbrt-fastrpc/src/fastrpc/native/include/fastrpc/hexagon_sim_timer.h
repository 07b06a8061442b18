/* Cycle counters of the vendor's simulator. Emulator: cycles are those of HAP_perf_get_pcycles, for all threads alike;
 * profiling and simulator logs are accepted, without effect.
 *
 * Source: the header of this name in Hexagon tools, for names, https://github.com/peyer/qcom_hexagon_sdk
 */
#ifndef HBRT_FASTRPC_HEXAGON_SIM_TIMER_H
#define HBRT_FASTRPC_HEXAGON_SIM_TIMER_H

#include <stdio.h>

#include "HAP_perf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sum of the measured intervals, and the start of the running one, which is 0 while none runs. */
__attribute__((weak)) uint64 hbrt_sim_timer_sum, hbrt_sim_timer_start;

static inline unsigned long long hexagon_sim_read_pcycles(void) { return HAP_perf_get_pcycles(); }
static inline unsigned long long hexagon_sim_read_cycles(void) { return HAP_perf_get_pcycles(); }
static inline unsigned long long hexagon_sim_read_tcycles(int tnum) { return (void)tnum, HAP_perf_get_pcycles(); }

static inline void hexagon_sim_clear_timer(void) { hbrt_sim_timer_sum = hbrt_sim_timer_start = 0; }
static inline void hexagon_sim_init_timer(void) { hexagon_sim_clear_timer(); }
static inline void hexagon_sim_start_timer(void) { hbrt_sim_timer_start = HAP_perf_get_pcycles(); }
static inline void hexagon_sim_end_timer(void) {
  if (hbrt_sim_timer_start) hbrt_sim_timer_sum += HAP_perf_get_pcycles() - hbrt_sim_timer_start;
  hbrt_sim_timer_start = 0;
}
static inline void hexagon_sim_show_timer(FILE *file) { fprintf(file, "%llu pcycles\n", (unsigned long long)hbrt_sim_timer_sum); }

static inline void hexagon_sim_prof_on(void) {}
static inline void hexagon_sim_prof_off(void) {}
static inline int hexagon_sim_log(char *event) { return (void)event, 0; }

#ifdef __cplusplus
}
#endif

#endif
