/* What the samples' programs need from their system.
 *
 * Source: programs that use it, https://github.com/mrshootingstar/hexagon_sdk_calculator_sim,
 * https://github.com/nihilistau/shannon-prime, for names
 */
#ifndef HBRT_FASTRPC_OS_DEFINES_H
#define HBRT_FASTRPC_OS_DEFINES_H

#include <errno.h>
#include <sys/time.h>
#include <unistd.h>

/* The offset that is added to error codes of the DSP side. */
#define DSP_OFFSET 0x80000400
/* Seconds. */
#define SLEEP(x) sleep(x)

#endif
