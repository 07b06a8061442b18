/* The DSP side's log for Hexagon programs: records go to the board's log.
 *
 * Source: qualcomm/fastrpc, HAP_farf.h and HAP_debug.h, for names, levels and the defaults of what is compiled,
 * https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_HAP_FARF_H
#define HBRT_FASTRPC_HAP_FARF_H

/* Programs expect this header to include these. */
#ifndef __hexagon__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "HAP_debug.h"

/* Levels that a file does not define are compiled by the defaults here: FARF(HIGH, ...) needs FARF_HIGH defined as 1
 * before this header. RUNTIME levels are always compiled, and written once HAP_setFARFRuntimeLoggingParams enables
 * them. */
#ifndef FARF_LOW
#define FARF_LOW 0
#endif
#ifndef FARF_MEDIUM
#define FARF_MEDIUM 0
#endif
#ifndef FARF_HIGH
#define FARF_HIGH 0
#endif
#ifndef FARF_ERROR
#define FARF_ERROR 1
#endif
#ifndef FARF_FATAL
#define FARF_FATAL 1
#endif
#ifndef FARF_ALWAYS
#define FARF_ALWAYS 1
#endif
#ifndef FARF_CRITICAL
#define FARF_CRITICAL 1
#endif
#define FARF_RUNTIME_LOW 1
#define FARF_RUNTIME_MEDIUM 1
#define FARF_RUNTIME_HIGH 1
#define FARF_RUNTIME_ERROR 1
#define FARF_RUNTIME_FATAL 1

#define FARF_LOW_LEVEL HAP_LEVEL_LOW
#define FARF_MEDIUM_LEVEL HAP_LEVEL_MEDIUM
#define FARF_HIGH_LEVEL HAP_LEVEL_HIGH
#define FARF_ERROR_LEVEL HAP_LEVEL_ERROR
#define FARF_FATAL_LEVEL HAP_LEVEL_FATAL
#define FARF_ALWAYS_LEVEL HAP_LEVEL_HIGH
#define FARF_CRITICAL_LEVEL HAP_LEVEL_CRITICAL
#define FARF_RUNTIME_LOW_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_LOW)
#define FARF_RUNTIME_MEDIUM_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_MEDIUM)
#define FARF_RUNTIME_HIGH_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_HIGH)
#define FARF_RUNTIME_ERROR_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_ERROR)
#define FARF_RUNTIME_FATAL_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_FATAL)

#define FARF(x, ...)                                                                                     \
  do {                                                                                                   \
    if (FARF_##x) HAP_debug_v2(FARF_##x##_LEVEL, __FILE__, __LINE__, __VA_ARGS__);                       \
  } while (0)

#endif
