/* fastrpc.c and dspqueue.c of an image, for each other. */
#ifndef HBRT_DSP_FASTRPC_H
#define HBRT_DSP_FASTRPC_H

#include <stdint.h>

#include "runtime.h"

/* The program whose task runs. */
uint32_t hbrt_fastrpc_client(void);

/* Log the sentence of a refusal; its code as it comes from the DSP. */
int hbrt_fastrpc_refuse(int code, const char *sentence);

/* No limit of the process's memory is in force anymore. */
void hbrt_fastrpc_unlimit(void);

/* Work through the requests of a queue: 0, or a code as it comes from the DSP. */
int hbrt_dspqueue_serve(uint64_t id, uint32_t client);
/* A program has ended. */
void hbrt_dspqueue_forget(uint32_t client);

#endif
