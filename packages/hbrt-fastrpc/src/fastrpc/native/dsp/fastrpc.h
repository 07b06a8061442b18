/* Shared by fastrpc.c and dspqueue.c of an image. */
#ifndef HBRT_DSP_FASTRPC_H
#define HBRT_DSP_FASTRPC_H

#include <stdint.h>

#include "runtime.h"

/* Log the reason for an error; returns its code as seen from the DSP. */
int hbrt_fastrpc_refuse(int code, const char *sentence);

/* Process a queue's requests: 0, or a code as seen from the DSP. */
int hbrt_dspqueue_serve(uint64_t id, uint32_t client);
/* A program has ended. */
void hbrt_dspqueue_forget(uint32_t client);

#endif
