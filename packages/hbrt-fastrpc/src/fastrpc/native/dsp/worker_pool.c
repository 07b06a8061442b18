/* Worker threads (worker_pool.h). All names are weak: an image may bring its own. */
#include <pthread.h>
#include <stdlib.h>

#include "qurt.h"
#include "runtime.h"
#include "worker_pool.h"

enum { WORKERS = 4, PRIORITY = 192, MIN_STACK_BYTES = 64 << 10 };
#define OWN EXPORT __attribute__((weak))

OWN unsigned int num_workers = WORKERS;
OWN unsigned int num_hvx128_contexts = WORKERS;

typedef struct node {
  worker_pool_job_t job;
  struct node *next;
} node_t;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t more;
  node_t *first, **end;
  pthread_t threads[WORKERS];
  unsigned int count, priority;
  int is_ending;
} pool_t;

static _Thread_local pool_t *mine; /* of a worker */

static void *serve(void *given) {
  pool_t *pool = mine = given;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->first && !pool->is_ending) pthread_cond_wait(&pool->more, &pool->lock);
    node_t *node = pool->first;
    if (!node) break;
    if (!(pool->first = node->next)) pool->end = &pool->first;
    pthread_mutex_unlock(&pool->lock);
    const worker_pool_job_t job = node->job;
    free(node);
    job.fptr(job.dptr);
    pthread_mutex_lock(&pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

OWN void worker_pool_deinit(worker_pool_context_t *context) {
  pool_t *pool = context ? *context : NULL;
  if (!pool) return;
  pthread_mutex_lock(&pool->lock);
  pool->is_ending = 1;
  pthread_cond_broadcast(&pool->more);
  pthread_mutex_unlock(&pool->lock);
  for (unsigned at = 0; at < pool->count; ++at) pthread_join(pool->threads[at], NULL);
  pthread_cond_destroy(&pool->more);
  pthread_mutex_destroy(&pool->lock);
  free(pool);
  *context = NULL;
}

OWN AEEResult worker_pool_init_with_stack_size(worker_pool_context_t *context, int stack_size) {
  pthread_attr_t attributes;
  if (!context || stack_size < 0) return AEE_EBADPARM;
  pool_t *pool = calloc(1, sizeof *pool);
  if (!pool) return AEE_ENOMEMORY;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->more, NULL);
  pool->end = &pool->first;
  pool->priority = PRIORITY;
  pthread_attr_init(&attributes);
  if (stack_size > MIN_STACK_BYTES) pthread_attr_setstacksize(&attributes, (size_t)stack_size);
  while (pool->count < WORKERS && !pthread_create(&pool->threads[pool->count], &attributes, serve, pool)) ++pool->count;
  pthread_attr_destroy(&attributes);
  *context = pool;
  if (pool->count == WORKERS) return 0;
  worker_pool_deinit(context);
  return AEE_ENOMEMORY;
}

OWN AEEResult worker_pool_init(worker_pool_context_t *context) { return worker_pool_init_with_stack_size(context, 0); }

static worker_pool_context_t shared;
static void make_shared(void) { worker_pool_init(&shared); }

static pool_t *pool_of(worker_pool_context_t context) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (context) return context;
  pthread_once(&once, make_shared);
  return shared;
}

OWN AEEResult worker_pool_available(worker_pool_context_t context) { return pool_of(context) ? 1 : 0; }

OWN AEEResult worker_pool_submit(worker_pool_context_t context, worker_pool_job_t job) {
  pool_t *pool = pool_of(context);
  if (!job.fptr) return AEE_EBADPARM;
  node_t *node = pool && pool != mine ? malloc(sizeof *node) : NULL;
  if (!node) { /* a worker that waited for another one might wait for itself */
    job.fptr(job.dptr);
    return 0;
  }
  node->job = job;
  node->next = NULL;
  pthread_mutex_lock(&pool->lock);
  *pool->end = node;
  pool->end = &node->next;
  pthread_cond_signal(&pool->more);
  pthread_mutex_unlock(&pool->lock);
  return 0;
}

OWN void worker_pool_synctoken_init(worker_synctoken_t *token, unsigned int njobs) { __atomic_store_n(&token->dummy[0], njobs, __ATOMIC_SEQ_CST); }

OWN void worker_pool_synctoken_jobdone(worker_synctoken_t *token) {
  if (!worker_pool_atomic_dec_return(&token->dummy[0])) qurt_futex_wake(&token->dummy[0], MAX_NUM_WORKERS);
}

OWN void worker_pool_synctoken_wait(worker_synctoken_t *token) {
  unsigned int left;
  while ((left = __atomic_load_n(&token->dummy[0], __ATOMIC_SEQ_CST))) qurt_futex_wait(&token->dummy[0], (int)left);
}

OWN AEEResult worker_pool_set_thread_priority(worker_pool_context_t context, unsigned int prio) {
  pool_t *pool = pool_of(context);
  if (!pool) return AEE_ENOMEMORY;
  pool->priority = prio;
  return 0;
}

OWN AEEResult worker_pool_get_thread_priority(worker_pool_context_t context, unsigned int *prio) {
  pool_t *pool = pool_of(context);
  if (!pool) return AEE_ENOMEMORY;
  if (prio) *prio = pool->priority;
  return prio ? 0 : AEE_EBADPARM;
}
