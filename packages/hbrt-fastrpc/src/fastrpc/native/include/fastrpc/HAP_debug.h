/* Levels and functions of HAP_farf.h.
 *
 * Source: qualcomm/fastrpc, HAP_debug.h, for names and values, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_HAP_DEBUG_H
#define HBRT_FASTRPC_HAP_DEBUG_H

#include <stdarg.h>

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HAP_LEVEL_LOW 0
#define HAP_LEVEL_MEDIUM 1
#define HAP_LEVEL_HIGH 2
#define HAP_LEVEL_ERROR 3
#define HAP_LEVEL_FATAL 4
#define HAP_LEVEL_CRITICAL 5
#define HAP_LEVEL_RUNTIME (1 << 5)

void HAP_debug(const char *msg, int level, const char *filename, int line);
void HAP_debug_v2(int level, const char *file, int line, const char *format, ...);
void HAP_debug_runtime(int level, const char *file, int line, const char *format, ...);
/* Select which levels of RUNTIME are written, one bit each (LOW is bit 0), and for which files; no files means all.
 * Returns 0. */
int HAP_setFARFRuntimeLoggingParams(unsigned int mask, const char *files[], unsigned short num_files);

#ifdef __cplusplus
}
#endif

#endif
