/* Worker threads, for images that split a call's work among the DSP's threads. If an image links its own functions with
 * these names, they take precedence.
 *
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, https://github.com/alibaba/MNN, for names and
 * parameters
 */
#ifndef HBRT_FASTRPC_WORKER_POOL_H
#define HBRT_FASTRPC_WORKER_POOL_H

#include "AEEStdDef.h"
#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WORKERPOOL_API __attribute__((visibility("default")))
#define MAX_NUM_WORKERS 6

typedef void (*worker_callback_t)(void *);
typedef void *worker_pool_context_t;
typedef struct {
  worker_callback_t fptr;
  void *dptr;
} worker_pool_job_t;
typedef struct {
  unsigned int dummy[5]; /* the first word counts the remaining jobs */
} worker_synctoken_t;

/* The number of threads in a pool, and of 128-byte vector units: 4. */
WORKERPOOL_API extern unsigned int num_workers;
WORKERPOOL_API extern unsigned int num_hvx128_contexts;

WORKERPOOL_API AEEResult worker_pool_init(worker_pool_context_t *context);
WORKERPOOL_API AEEResult worker_pool_init_with_stack_size(worker_pool_context_t *context, int stack_size);
/* Wait for the submitted jobs, then end the threads. */
WORKERPOOL_API void worker_pool_deinit(worker_pool_context_t *context);
/* 1 if the pool has threads; NULL is a default pool of every image. */
WORKERPOOL_API AEEResult worker_pool_available(worker_pool_context_t context);
/* Have a thread call job.fptr(job.dptr). A job submitted from one of the pool's own threads runs immediately. */
WORKERPOOL_API AEEResult worker_pool_submit(worker_pool_context_t context, worker_pool_job_t job);

WORKERPOOL_API void worker_pool_synctoken_init(worker_synctoken_t *token, unsigned int njobs);
WORKERPOOL_API void worker_pool_synctoken_jobdone(worker_synctoken_t *token);
WORKERPOOL_API void worker_pool_synctoken_wait(worker_synctoken_t *token);

/* Stored, but ignored. */
WORKERPOOL_API AEEResult worker_pool_set_thread_priority(worker_pool_context_t context, unsigned int prio);
WORKERPOOL_API AEEResult worker_pool_get_thread_priority(worker_pool_context_t context, unsigned int *prio);

static inline unsigned int worker_pool_atomic_inc_return(unsigned int *target) { return __atomic_add_fetch(target, 1, __ATOMIC_SEQ_CST); }
static inline unsigned int worker_pool_atomic_dec_return(unsigned int *target) { return __atomic_sub_fetch(target, 1, __ATOMIC_SEQ_CST); }

#ifdef __cplusplus
}
#endif

#endif
