/* The process domain's name, and early wake-ups (accepted, without effect).
 *
 * Source: programs that call it, https://github.com/ggml-org/llama.cpp, for names and parameters
 */
#ifndef HBRT_FASTRPC_HAP_PS_H
#define HBRT_FASTRPC_HAP_PS_H

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

int HAP_set_process_name(char *name);
int HAP_thread_migrate(int tidQ);
int HAP_send_early_signal(uint32_t tidQ, uint32_t earlyWakeTime);
int fastrpc_send_early_signal(uint32_t tidQ, uint32_t earlyWakeTime);
int HAP_get_thread_priority_ceiling(void);

#ifdef __cplusplus
}
#endif

#endif
