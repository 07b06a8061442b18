/* The calls of qurt.h on the host's threads; for this machine and for a Hexagon. */
#define _GNU_SOURCE
#include "qurt.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "HAP_perf.h"
#include "runtime.h"

enum { MAX_THREADS = 256, MIN_STACK = 64 << 10, WAITS = 64 };

/* -- threads: an id is a table index plus, above it, a use count, so an id never refers to two threads */

static struct thread {
  pthread_t handle;
  void (*entry)(void *);
  void *argument;
  char name[QURT_THREAD_ATTR_NAME_MAXLEN];
  int status, priority;
  unsigned uses, is_used, is_detached, has_ended;
} threads[MAX_THREADS];
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned own_id;

static struct thread *thread_of(unsigned id) {
  struct thread *found = &threads[id % MAX_THREADS];
  return id && found->is_used && found->uses == id / MAX_THREADS ? found : NULL;
}

static void ended(int status) {
  pthread_mutex_lock(&threads_lock);
  struct thread *own = thread_of(own_id);
  if (own) {
    own->status = status;
    own->has_ended = 1;
    if (own->is_detached) own->is_used = 0;
  }
  pthread_mutex_unlock(&threads_lock);
}

static void *run(void *given) {
  struct thread *own = given;
  own_id = (unsigned)(own - threads) + own->uses * MAX_THREADS;
  own->entry(own->argument);
  ended(0);
  return NULL;
}

EXPORT void qurt_thread_attr_init(qurt_thread_attr_t *attr) {
  memset(attr, 0, sizeof *attr);
  attr->priority = QURT_THREAD_ATTR_PRIORITY_DEFAULT;
}
EXPORT void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, const char *name) {
  size_t at = 0;
  for (; name[at] && at + 1 < sizeof attr->name; ++at) attr->name[at] = name[at];
  attr->name[at] = 0;
}
EXPORT void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority) { attr->priority = priority; }
EXPORT void qurt_thread_attr_set_detachstate(qurt_thread_attr_t *attr, unsigned short detachstate) { attr->detachstate = detachstate; }
EXPORT void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int stack_size) { attr->stack_size = stack_size; }
EXPORT void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack_addr) { attr->stack_addr = stack_addr; }
EXPORT void qurt_thread_attr_set_tcb_partition(qurt_thread_attr_t *attr, unsigned char tcb_partition) { (void)attr, (void)tcb_partition; }
EXPORT void qurt_thread_attr_set_bus_priority(qurt_thread_attr_t *attr, unsigned short bus_priority) { (void)attr, (void)bus_priority; }
EXPORT void qurt_thread_attr_set_autostack(qurt_thread_attr_t *attr, unsigned short autostack) { (void)attr, (void)autostack; }

EXPORT int qurt_thread_create(qurt_thread_t *thread_id, qurt_thread_attr_t *attr, void (*entrypoint)(void *), void *arg) {
  pthread_attr_t attributes;
  if (!thread_id || !attr || !entrypoint) return QURT_EINVALID;
  const size_t stack = attr->stack_size < MIN_STACK ? MIN_STACK : (attr->stack_size + 0xffffu) & ~0xffffu;
  if (pthread_attr_init(&attributes)) return QURT_EMEM;
  pthread_attr_setstacksize(&attributes, stack);
  if (attr->detachstate == QURT_THREAD_ATTR_CREATE_DETACHED) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_mutex_lock(&threads_lock);
  int at = 0, code = QURT_EFAILED;
  while (at < MAX_THREADS && threads[at].is_used) ++at;
  if (at < MAX_THREADS) {
    struct thread *made = &threads[at];
    const unsigned uses = made->uses + 1;
    *made = (struct thread){.entry = entrypoint, .argument = arg, .uses = uses, .is_used = 1, .priority = attr->priority,
                            .is_detached = attr->detachstate == QURT_THREAD_ATTR_CREATE_DETACHED};
    memcpy(made->name, attr->name, sizeof made->name);
    if (pthread_create(&made->handle, &attributes, run, made)) made->is_used = 0;
    else *thread_id = (unsigned)at + uses * MAX_THREADS, code = QURT_EOK;
  }
  pthread_mutex_unlock(&threads_lock);
  pthread_attr_destroy(&attributes);
  return code;
}

EXPORT int qurt_thread_join(unsigned int tid, int *status) {
  pthread_mutex_lock(&threads_lock);
  struct thread *found = thread_of(tid);
  const int is_there = found && !found->is_detached;
  const pthread_t handle = is_there ? found->handle : pthread_self();
  pthread_mutex_unlock(&threads_lock);
  if (!is_there) return QURT_ENOTHREAD;
  if (pthread_join(handle, NULL)) return QURT_ENOTHREAD;
  pthread_mutex_lock(&threads_lock);
  if (status) *status = found->status;
  found->is_used = 0;
  pthread_mutex_unlock(&threads_lock);
  return QURT_EOK;
}

EXPORT void qurt_thread_exit(int status) {
  ended(status);
  pthread_exit(NULL);
}
EXPORT qurt_thread_t qurt_thread_get_id(void) { return own_id ? own_id : 1; /* the main thread */ }
EXPORT void qurt_thread_get_name(char *name, unsigned char max_len) {
  const struct thread *own = thread_of(own_id);
  if (!max_len) return;
  strncpy(name, own ? own->name : "main", max_len - 1u);
  name[max_len - 1] = 0;
}
EXPORT int qurt_thread_get_priority(qurt_thread_t threadid) {
  const struct thread *found = thread_of(threadid);
  return found ? found->priority : QURT_THREAD_ATTR_PRIORITY_DEFAULT;
}
EXPORT int qurt_thread_set_priority(qurt_thread_t threadid, unsigned short newprio) {
  struct thread *found = thread_of(threadid);
  if (found) found->priority = newprio;
  return QURT_EOK;
}
EXPORT void qurt_thread_yield(void) { sched_yield(); }
EXPORT void qurt_sleep(unsigned long long duration) { HAP_timer_sleep(duration); }
EXPORT int qurt_timer_sleep(unsigned long long duration) { return HAP_timer_sleep(duration) ? QURT_EFAILED : QURT_EOK; }

/* -- mutexes and conditions */

static void make_mutex(pthread_mutex_t *lock, int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  pthread_mutex_init(lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

EXPORT void qurt_mutex_init(qurt_mutex_t *lock) { make_mutex(&lock->lock, PTHREAD_MUTEX_NORMAL); }
EXPORT void qurt_mutex_destroy(qurt_mutex_t *lock) { pthread_mutex_destroy(&lock->lock); }
EXPORT void qurt_mutex_lock(qurt_mutex_t *lock) { pthread_mutex_lock(&lock->lock); }
EXPORT void qurt_mutex_unlock(qurt_mutex_t *lock) { pthread_mutex_unlock(&lock->lock); }
EXPORT int qurt_mutex_try_lock(qurt_mutex_t *lock) { return pthread_mutex_trylock(&lock->lock) ? -1 : 0; }
EXPORT void qurt_rmutex_init(qurt_mutex_t *lock) { make_mutex(&lock->lock, PTHREAD_MUTEX_RECURSIVE); }
EXPORT void qurt_rmutex_destroy(qurt_mutex_t *lock) { qurt_mutex_destroy(lock); }
EXPORT void qurt_rmutex_lock(qurt_mutex_t *lock) { qurt_mutex_lock(lock); }
EXPORT void qurt_rmutex_unlock(qurt_mutex_t *lock) { qurt_mutex_unlock(lock); }
EXPORT int qurt_rmutex_try_lock(qurt_mutex_t *lock) { return qurt_mutex_try_lock(lock); }

EXPORT void qurt_cond_init(qurt_cond_t *cond) { pthread_cond_init(&cond->changed, NULL); }
EXPORT void qurt_cond_destroy(qurt_cond_t *cond) { pthread_cond_destroy(&cond->changed); }
EXPORT void qurt_cond_signal(qurt_cond_t *cond) { pthread_cond_signal(&cond->changed); }
EXPORT void qurt_cond_broadcast(qurt_cond_t *cond) { pthread_cond_broadcast(&cond->changed); }
EXPORT void qurt_cond_wait(qurt_cond_t *cond, qurt_mutex_t *mutex) { pthread_cond_wait(&cond->changed, &mutex->lock); }

/* -- semaphores; barriers, signals, pipes: a lock and a condition each */

#define MAKE(object) pthread_mutex_init(&(object)->lock, NULL), pthread_cond_init(&(object)->changed, NULL)
#define DESTROY(object) pthread_mutex_destroy(&(object)->lock), pthread_cond_destroy(&(object)->changed)
#define LOCK(object) pthread_mutex_lock(&(object)->lock)
#define UNLOCK(object) pthread_mutex_unlock(&(object)->lock)
#define WAIT(object) pthread_cond_wait(&(object)->changed, &(object)->lock)
#define WAKE(object) pthread_cond_broadcast(&(object)->changed)

/* A semaphore has 8 bytes, because programs overlay it on structures with room for the vendor's: the value, and above
 * it the number of waiting threads. Who adds to it does not read it afterwards: a waiting thread may have freed it. */
#define WAITER (1ull << 32)
static void futex(qurt_sem_t *sem, int operation, int value) { syscall(SYS_futex, &sem->state, operation, value, NULL, NULL, 0); }
static int take_one(qurt_sem_t *sem) {
  unsigned long long state = __atomic_load_n(&sem->state, __ATOMIC_SEQ_CST);
  while ((unsigned)state && !__atomic_compare_exchange_n(&sem->state, &state, state - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
  return (unsigned)state > 0;
}
EXPORT void qurt_sem_init_val(qurt_sem_t *sem, unsigned short val) { sem->state = val; }
EXPORT void qurt_sem_init(qurt_sem_t *sem) { qurt_sem_init_val(sem, 1); }
EXPORT void qurt_sem_destroy(qurt_sem_t *sem) { (void)sem; }
EXPORT int qurt_sem_add(qurt_sem_t *sem, unsigned int amt) {
  if (__atomic_fetch_add(&sem->state, amt, __ATOMIC_SEQ_CST) >= WAITER) futex(sem, FUTEX_WAKE_PRIVATE, INT_MAX);
  return QURT_EOK;
}
EXPORT int qurt_sem_up(qurt_sem_t *sem) { return qurt_sem_add(sem, 1); }
EXPORT int qurt_sem_down(qurt_sem_t *sem) {
  while (!take_one(sem)) {
    __atomic_fetch_add(&sem->state, WAITER, __ATOMIC_SEQ_CST);
    futex(sem, FUTEX_WAIT_PRIVATE, 0); /* returns at once if the value is not 0 by now */
    __atomic_fetch_sub(&sem->state, WAITER, __ATOMIC_SEQ_CST);
  }
  return QURT_EOK;
}
EXPORT int qurt_sem_try_down(qurt_sem_t *sem) { return take_one(sem) ? QURT_EOK : -1; }
EXPORT unsigned short qurt_sem_get_val(qurt_sem_t *sem) { return (unsigned short)__atomic_load_n(&sem->state, __ATOMIC_SEQ_CST); }

EXPORT int qurt_barrier_init(qurt_barrier_t *barrier, unsigned int threads_total) {
  MAKE(barrier), barrier->total = threads_total, barrier->waiting = barrier->round = 0;
  return QURT_EOK;
}
EXPORT int qurt_barrier_destroy(qurt_barrier_t *barrier) { return DESTROY(barrier), QURT_EOK; }
EXPORT int qurt_barrier_wait(qurt_barrier_t *barrier) {
  LOCK(barrier);
  const unsigned round = barrier->round;
  const int is_last = ++barrier->waiting >= barrier->total;
  if (is_last) {
    barrier->waiting = 0;
    ++barrier->round;
    WAKE(barrier);
  }
  while (!is_last && barrier->round == round) WAIT(barrier);
  UNLOCK(barrier);
  return is_last ? QURT_BARRIER_SERIAL_THREAD : QURT_BARRIER_OTHER;
}

EXPORT void qurt_signal_init(qurt_signal_t *signal) { MAKE(signal), signal->bits = 0; }
EXPORT void qurt_signal_destroy(qurt_signal_t *signal) { DESTROY(signal); }
EXPORT unsigned int qurt_signal_wait(qurt_signal_t *signal, unsigned int mask, unsigned int attribute) {
  LOCK(signal);
  while (attribute == QURT_SIGNAL_ATTR_WAIT_ALL ? (signal->bits & mask) != mask : !(signal->bits & mask)) WAIT(signal);
  const unsigned bits = signal->bits;
  UNLOCK(signal);
  return bits;
}
EXPORT unsigned int qurt_signal_wait_any(qurt_signal_t *signal, unsigned int mask) { return qurt_signal_wait(signal, mask, QURT_SIGNAL_ATTR_WAIT_ANY); }
EXPORT unsigned int qurt_signal_wait_all(qurt_signal_t *signal, unsigned int mask) { return qurt_signal_wait(signal, mask, QURT_SIGNAL_ATTR_WAIT_ALL); }
EXPORT unsigned int qurt_anysignal_set(qurt_anysignal_t *signal, unsigned int mask) {
  LOCK(signal);
  const unsigned before = signal->bits;
  signal->bits |= mask;
  WAKE(signal);
  UNLOCK(signal);
  return before;
}
EXPORT unsigned int qurt_anysignal_clear(qurt_anysignal_t *signal, unsigned int mask) {
  LOCK(signal);
  const unsigned before = signal->bits;
  signal->bits &= ~mask;
  UNLOCK(signal);
  return before;
}
EXPORT unsigned int qurt_anysignal_get(qurt_anysignal_t *signal) { return qurt_anysignal_set(signal, 0); }
EXPORT void qurt_signal_set(qurt_signal_t *signal, unsigned int mask) { qurt_anysignal_set(signal, mask); }
EXPORT unsigned int qurt_signal_get(qurt_signal_t *signal) { return qurt_anysignal_get(signal); }
EXPORT void qurt_signal_clear(qurt_signal_t *signal, unsigned int mask) { qurt_anysignal_clear(signal, mask); }
EXPORT void qurt_anysignal_init(qurt_anysignal_t *signal) { qurt_signal_init(signal); }
EXPORT void qurt_anysignal_destroy(qurt_anysignal_t *signal) { qurt_signal_destroy(signal); }
EXPORT unsigned int qurt_anysignal_wait(qurt_anysignal_t *signal, unsigned int mask) { return qurt_signal_wait_any(signal, mask); }

/* Waiters share a place with those at other addresses, and check again when it is woken. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
} waits[WAITS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make_waits(void) {
  for (int at = 0; at < WAITS; ++at) MAKE(&waits[at]);
}
#define PLACE(address) (pthread_once(&once, make_waits), &waits[(uintptr_t)(address) / sizeof(int) % WAITS])

EXPORT int qurt_futex_wait(void *lock, int val) {
  LOCK(PLACE(lock));
  if (__atomic_load_n((int *)lock, __ATOMIC_ACQUIRE) == val) WAIT(PLACE(lock)); /* the caller checks again */
  UNLOCK(PLACE(lock));
  return QURT_EOK;
}
EXPORT int qurt_futex_wake(void *lock, int n_to_wake) {
  LOCK(PLACE(lock));
  WAKE(PLACE(lock));
  UNLOCK(PLACE(lock));
  return n_to_wake;
}

EXPORT void qurt_pipe_attr_init(qurt_pipe_attr_t *attr) { attr->buffer = NULL, attr->elements = 0; }
EXPORT void qurt_pipe_attr_set_buffer(qurt_pipe_attr_t *attr, qurt_pipe_data_t *buffer) { attr->buffer = buffer; }
EXPORT void qurt_pipe_attr_set_elements(qurt_pipe_attr_t *attr, unsigned int elements) { attr->elements = elements; }
EXPORT void qurt_pipe_attr_set_buffer_partition(qurt_pipe_attr_t *attr, unsigned char mem_partition) { (void)attr, (void)mem_partition; }
EXPORT int qurt_pipe_init(qurt_pipe_t *pipe, qurt_pipe_attr_t *attr) {
  if (!pipe || !attr || !attr->elements) return QURT_EINVALID;
  memset(pipe, 0, sizeof *pipe);
  pipe->is_own = !attr->buffer;
  pipe->buffer = attr->buffer ? attr->buffer : calloc(attr->elements, sizeof *pipe->buffer);
  pipe->elements = attr->elements;
  if (!pipe->buffer) return QURT_EMEM;
  MAKE(pipe);
  return QURT_EOK;
}
EXPORT int qurt_pipe_create(qurt_pipe_t **pipe, qurt_pipe_attr_t *attr) {
  qurt_pipe_t *made = pipe ? malloc(sizeof *made) : NULL;
  const int code = made ? qurt_pipe_init(made, attr) : QURT_EMEM;
  if (code) free(made);
  else *pipe = made;
  return code;
}
EXPORT void qurt_pipe_destroy(qurt_pipe_t *pipe) {
  DESTROY(pipe);
  if (pipe->is_own) free(pipe->buffer);
}
EXPORT void qurt_pipe_delete(qurt_pipe_t *pipe) { qurt_pipe_destroy(pipe), free(pipe); }

static int send(qurt_pipe_t *pipe, qurt_pipe_data_t data, int waits_for_room) {
  LOCK(pipe);
  while (waits_for_room && pipe->count == pipe->elements) WAIT(pipe);
  const int has_room = pipe->count < pipe->elements;
  if (has_room) pipe->buffer[(pipe->first + pipe->count++) % pipe->elements] = data, WAKE(pipe);
  UNLOCK(pipe);
  return has_room ? QURT_EOK : -1;
}
static int receive(qurt_pipe_t *pipe, qurt_pipe_data_t *data, int waits_for_data) {
  LOCK(pipe);
  while (waits_for_data && !pipe->count) WAIT(pipe);
  const int has_data = pipe->count > 0;
  if (has_data) *data = pipe->buffer[pipe->first], pipe->first = (pipe->first + 1) % pipe->elements, --pipe->count, WAKE(pipe);
  UNLOCK(pipe);
  return has_data ? QURT_EOK : -1;
}
EXPORT void qurt_pipe_send(qurt_pipe_t *pipe, qurt_pipe_data_t data) { send(pipe, data, 1); }
EXPORT int qurt_pipe_try_send(qurt_pipe_t *pipe, qurt_pipe_data_t data) { return send(pipe, data, 0); }
EXPORT qurt_pipe_data_t qurt_pipe_receive(qurt_pipe_t *pipe) {
  qurt_pipe_data_t data = 0;
  receive(pipe, &data, 1);
  return data;
}
EXPORT qurt_pipe_data_t qurt_pipe_try_receive(qurt_pipe_t *pipe, int *success) {
  qurt_pipe_data_t data = 0;
  *success = receive(pipe, &data, 0);
  return data;
}
EXPORT int qurt_pipe_is_empty(qurt_pipe_t *pipe) {
  LOCK(pipe);
  const int is_empty = !pipe->count;
  UNLOCK(pipe);
  return is_empty;
}

/* -- thread-local values: a key is the host's plus 1, so that 0 is invalid; a C library may not check its own */

static _Atomic unsigned char is_key[PTHREAD_KEYS_MAX + 1];
static int has_key(int key) { return key > 0 && key <= PTHREAD_KEYS_MAX && is_key[key]; }
EXPORT int qurt_tls_create_key(int *key, void (*destructor)(void *)) {
  pthread_key_t made;
  if (!key) return QURT_EINVALID;
  if (pthread_key_create(&made, destructor)) return QURT_ETLSAVAIL;
  is_key[*key = (int)made + 1] = 1;
  return QURT_EOK;
}
EXPORT int qurt_tls_delete_key(int key) {
  if (!has_key(key)) return QURT_ETLSENTRY;
  is_key[key] = 0;
  return pthread_key_delete((pthread_key_t)(key - 1)) ? QURT_ETLSENTRY : QURT_EOK;
}
EXPORT int qurt_tls_set_specific(int key, const void *value) {
  return has_key(key) && !pthread_setspecific((pthread_key_t)(key - 1), value) ? QURT_EOK : QURT_EINVALID;
}
EXPORT void *qurt_tls_get_specific(int key) { return has_key(key) ? pthread_getspecific((pthread_key_t)(key - 1)) : NULL; }

/* -- vector units, caches, memory, clocks */

static __thread int hvx_mode = -1;
EXPORT int qurt_hvx_lock(qurt_hvx_mode_t lock_mode) { return hvx_mode = (int)lock_mode, QURT_EOK; }
EXPORT int qurt_hvx_unlock(void) { return hvx_mode = -1, QURT_EOK; }
EXPORT int qurt_hvx_try_lock(qurt_hvx_mode_t lock_mode) { return qurt_hvx_lock(lock_mode); }
EXPORT int qurt_hvx_get_mode(void) { return hvx_mode; }
EXPORT int qurt_hvx_get_units(void) { return 0x200; }
static int reserved_units; /* of 64 bytes */
EXPORT int qurt_hvx_reserve(int num_units) {
  int none = 0;
  if (num_units == QURT_HVX_RESERVE_ALL_AVAILABLE) num_units = QURT_HVX_RESERVE_ALL;
  if (num_units < 1 || num_units > QURT_HVX_RESERVE_ALL) return QURT_HVX_RESERVE_NOT_SUPPORTED;
  const int is_first = __atomic_compare_exchange_n(&reserved_units, &none, num_units, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return is_first ? num_units : QURT_HVX_RESERVE_ALREADY_MADE;
}
EXPORT int qurt_hvx_cancel_reserve(void) { return __atomic_exchange_n(&reserved_units, 0, __ATOMIC_SEQ_CST) ? QURT_EOK : QURT_HVX_RESERVE_CANCEL_ERR; }

EXPORT void qurt_pmu_enable(int enable) { (void)enable; }
EXPORT void qurt_pmu_set(int reg_id, unsigned int reg_value) { (void)reg_id, (void)reg_value; }
EXPORT unsigned int qurt_pmu_get(int red_id) { return (void)red_id, 0; }

EXPORT int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode, qurt_mem_cache_type_t type) {
  return (void)addr, (void)size, (void)opcode, (void)type, QURT_EOK;
}
EXPORT int qurt_mem_l2cache_line_lock(qurt_addr_t addr, qurt_size_t size) { return (void)addr, (void)size, QURT_EOK; }
EXPORT int qurt_mem_l2cache_line_unlock(qurt_addr_t addr, qurt_size_t size) { return (void)addr, (void)size, QURT_EOK; }
EXPORT void *qurt_malloc(unsigned int size) { return malloc(size); }
EXPORT void *qurt_calloc(unsigned int elsize, unsigned int num) { return calloc(num, elsize); }
EXPORT void *qurt_realloc(void *ptr, int newsize) { return newsize < 0 ? NULL : realloc(ptr, (size_t)newsize); }
EXPORT void qurt_free(void *ptr) { free(ptr); }

EXPORT unsigned long long qurt_sysclock_get_hw_ticks(void) { return HAP_perf_get_qtimer_count(); }
EXPORT unsigned long long qurt_timer_get_ticks(void) { return HAP_perf_get_qtimer_count(); }
EXPORT unsigned long long qurt_timer_timetick_to_us(unsigned long long ticks) { return HAP_perf_qtimer_count_to_us(ticks); }
EXPORT unsigned long long qurt_timer_timetick_from_us(unsigned long long us) { return us * 192 / 10; }
EXPORT unsigned long long qurt_get_core_pcycles(void) { return HAP_perf_get_pcycles(); }
EXPORT int qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t *mhwt) {
  if (!mhwt) return QURT_EVAL;
  mhwt->max_hthreads = 4;
  return QURT_EOK;
}
EXPORT int qurt_sysenv_get_arch_version(qurt_arch_version_t *vers) {
#ifdef __HEXAGON_ARCH__
  const unsigned version = __HEXAGON_ARCH__;
#else
  const unsigned version = 66;
#endif
  if (!vers) return QURT_EVAL;
  vers->arch_version = version / 10 * 16 + version % 10;
  return QURT_EOK;
}

static void *first_break;
__attribute__((constructor)) static void remember_heap(void) { first_break = sbrk(0); }
EXPORT int qurt_sysenv_get_app_heap(qurt_sysenv_app_heap_t *aheap) {
  if (!aheap) return QURT_EVAL;
  aheap->heap_base = (qurt_addr_t)first_break;
  aheap->heap_limit = (qurt_addr_t)sbrk(0);
  return QURT_EOK;
}
EXPORT int qurt_process_get_id(void) { return getpid(); }
EXPORT int qurt_sysenv_get_process_name(qurt_sysenv_procname_t *pname) {
  if (!pname) return QURT_EVAL;
  pname->asid = (unsigned)qurt_process_get_id();
  strncpy(pname->name, program_invocation_short_name, sizeof pname->name - 1);
  pname->name[sizeof pname->name - 1] = 0;
  return QURT_EOK;
}
EXPORT unsigned int qurt_api_version(void) { return 0x01040000; }
