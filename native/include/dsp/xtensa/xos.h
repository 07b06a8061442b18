/* The parts of the RTOS used by the image template: the clock and the system timer.
 *
 * Source: DSP development guide (J5 OE), 10.2.3.3.5, for the calls. Emulator: there is no tick; modeled cycles stay at
 * 648 MHz regardless of the clock set.
 */
#ifndef HBRT_XTENSA_XOS_H
#define HBRT_XTENSA_XOS_H

#include <stdint.h>

#include "../hbrt/site.h"

#define XOS_OK 0

HBRT_BEGIN

void xos_set_clock_freq(uint32_t frequency_hz);
uint32_t xos_get_clock_freq(void);
/* Returns XOS_OK, or an error value for a timer below 0. */
int32_t xos_start_system_timer(int32_t timer, uint32_t tick_cycles);

HBRT_END
#endif /* HBRT_XTENSA_XOS_H */
