/* A DSP's kernel as images use it: threads, synchronization, caches, clocks; implemented with the host's threads.
 *
 * Emulator: sizes and contents of the types; priorities are stored but ignored.
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, https://github.com/ggml-org/llama.cpp, for names,
 * parameters and values
 */
#ifndef HBRT_FASTRPC_QURT_H
#define HBRT_FASTRPC_QURT_H

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uintptr_t qurt_addr_t;
typedef size_t qurt_size_t;
typedef uintptr_t qurt_paddr_t;
typedef uint64_t qurt_paddr_64_t;

#define QURT_EOK 0
#define QURT_EVAL 1
#define QURT_EMEM 2
#define QURT_EINVALID 4
#define QURT_EFAILED 12
#define QURT_ENOTALLOWED 13
#define QURT_ETLSAVAIL 23
#define QURT_ETLSENTRY 24
#define QURT_ENOTHREAD 30
#define QURT_ECANCEL 37
#define QURT_ETIMEDOUT 47
#define QURT_EFATAL (-1)

/* -- threads */

typedef unsigned int qurt_thread_t;
#define QURT_MAX_HTHREAD_LIMIT 8
#define QURT_THREAD_ATTR_NAME_MAXLEN 16
#define QURT_THREAD_ATTR_PRIORITY_DEFAULT 254
#define QURT_THREAD_ATTR_CREATE_LEGACY 0
#define QURT_THREAD_ATTR_CREATE_JOINABLE 1
#define QURT_THREAD_ATTR_CREATE_DETACHED 2
#define QURT_THREAD_BUS_PRIO_DISABLED 0
#define QURT_THREAD_BUS_PRIO_ENABLED 1
#define QURT_THREAD_AUTOSTACK_DISABLED 0
#define QURT_THREAD_AUTOSTACK_ENABLED 1
#define QURT_THREAD_ATTR_TCB_PARTITION_RAM 0
#define QURT_THREAD_ATTR_TCB_PARTITION_TCM 1
typedef struct {
  char name[QURT_THREAD_ATTR_NAME_MAXLEN];
  unsigned short priority, detachstate;
  unsigned int stack_size;
  void *stack_addr;
} qurt_thread_attr_t;

void qurt_thread_attr_init(qurt_thread_attr_t *attr);
void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, const char *name);
void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority);
void qurt_thread_attr_set_detachstate(qurt_thread_attr_t *attr, unsigned short detachstate);
void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int stack_size);
/* Stored; the actual stack is the host's, of the same size or more. */
void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack_addr);
void qurt_thread_attr_set_tcb_partition(qurt_thread_attr_t *attr, unsigned char tcb_partition);
void qurt_thread_attr_set_bus_priority(qurt_thread_attr_t *attr, unsigned short bus_priority);
void qurt_thread_attr_set_autostack(qurt_thread_attr_t *attr, unsigned short autostack);
int qurt_thread_create(qurt_thread_t *thread_id, qurt_thread_attr_t *attr, void (*entrypoint)(void *), void *arg);
int qurt_thread_join(unsigned int tid, int *status);
void qurt_thread_exit(int status) __attribute__((noreturn));
qurt_thread_t qurt_thread_get_id(void);
void qurt_thread_get_name(char *name, unsigned char max_len);
int qurt_thread_get_priority(qurt_thread_t threadid);
int qurt_thread_set_priority(qurt_thread_t threadid, unsigned short newprio);
void qurt_thread_yield(void);
/* Microseconds. */
void qurt_sleep(unsigned long long duration);
int qurt_timer_sleep(unsigned long long duration);

/* A thread-local value; destructor, unless NULL, receives the value of an ending thread. A thread's initial value is
 * NULL. */
int qurt_tls_create_key(int *key, void (*destructor)(void *));
int qurt_tls_delete_key(int key);
int qurt_tls_set_specific(int key, const void *value);
void *qurt_tls_get_specific(int key);

/* -- synchronization */

typedef struct {
  pthread_mutex_t lock;
} qurt_mutex_t;
#define QURT_MUTEX_INIT {PTHREAD_MUTEX_INITIALIZER}
void qurt_mutex_init(qurt_mutex_t *lock);
void qurt_mutex_destroy(qurt_mutex_t *lock);
void qurt_mutex_lock(qurt_mutex_t *lock);
void qurt_mutex_unlock(qurt_mutex_t *lock);
int qurt_mutex_try_lock(qurt_mutex_t *lock);
void qurt_rmutex_init(qurt_mutex_t *lock);
void qurt_rmutex_destroy(qurt_mutex_t *lock);
void qurt_rmutex_lock(qurt_mutex_t *lock);
void qurt_rmutex_unlock(qurt_mutex_t *lock);
int qurt_rmutex_try_lock(qurt_mutex_t *lock);
/* These do not raise the priority of the lock's holder. */
#define qurt_pimutex_init qurt_rmutex_init
#define qurt_pimutex_destroy qurt_rmutex_destroy
#define qurt_pimutex_lock qurt_rmutex_lock
#define qurt_pimutex_unlock qurt_rmutex_unlock
#define qurt_pimutex_try_lock qurt_rmutex_try_lock
typedef qurt_mutex_t qurt_rmutex2_t;
#define qurt_rmutex2_init qurt_rmutex_init
#define qurt_rmutex2_destroy qurt_rmutex_destroy
#define qurt_rmutex2_lock qurt_rmutex_lock
#define qurt_rmutex2_unlock qurt_rmutex_unlock
#define qurt_rmutex2_try_lock qurt_rmutex_try_lock

typedef struct {
  pthread_cond_t changed;
} qurt_cond_t;
void qurt_cond_init(qurt_cond_t *cond);
void qurt_cond_destroy(qurt_cond_t *cond);
void qurt_cond_signal(qurt_cond_t *cond);
void qurt_cond_broadcast(qurt_cond_t *cond);
void qurt_cond_wait(qurt_cond_t *cond, qurt_mutex_t *mutex);

typedef struct {
  unsigned long long state;
} qurt_sem_t;
void qurt_sem_init(qurt_sem_t *sem); /* to 1 */
void qurt_sem_init_val(qurt_sem_t *sem, unsigned short val);
void qurt_sem_destroy(qurt_sem_t *sem);
int qurt_sem_add(qurt_sem_t *sem, unsigned int amt);
int qurt_sem_up(qurt_sem_t *sem);
int qurt_sem_down(qurt_sem_t *sem);
int qurt_sem_try_down(qurt_sem_t *sem);
unsigned short qurt_sem_get_val(qurt_sem_t *sem);

#define QURT_BARRIER_SERIAL_THREAD 1
#define QURT_BARRIER_OTHER 0
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned int total, waiting, round;
} qurt_barrier_t;
int qurt_barrier_init(qurt_barrier_t *barrier, unsigned int threads_total);
int qurt_barrier_destroy(qurt_barrier_t *barrier);
int qurt_barrier_wait(qurt_barrier_t *barrier);

#define QURT_SIGNAL_ATTR_WAIT_ANY 0
#define QURT_SIGNAL_ATTR_WAIT_ALL 1
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned int bits;
} qurt_signal_t;
typedef qurt_signal_t qurt_anysignal_t;
void qurt_signal_init(qurt_signal_t *signal);
void qurt_signal_destroy(qurt_signal_t *signal);
unsigned int qurt_signal_wait(qurt_signal_t *signal, unsigned int mask, unsigned int attribute);
unsigned int qurt_signal_wait_any(qurt_signal_t *signal, unsigned int mask);
unsigned int qurt_signal_wait_all(qurt_signal_t *signal, unsigned int mask);
void qurt_signal_set(qurt_signal_t *signal, unsigned int mask);
unsigned int qurt_signal_get(qurt_signal_t *signal);
void qurt_signal_clear(qurt_signal_t *signal, unsigned int mask);
void qurt_anysignal_init(qurt_anysignal_t *signal);
void qurt_anysignal_destroy(qurt_anysignal_t *signal);
unsigned int qurt_anysignal_wait(qurt_anysignal_t *signal, unsigned int mask);
/* These two return the previous bits. */
unsigned int qurt_anysignal_set(qurt_anysignal_t *signal, unsigned int mask);
unsigned int qurt_anysignal_clear(qurt_anysignal_t *signal, unsigned int mask);
unsigned int qurt_anysignal_get(qurt_anysignal_t *signal);

/* Wait while *lock equals val; wake some of its waiters. */
int qurt_futex_wait(void *lock, int val);
int qurt_futex_wake(void *lock, int n_to_wake);

typedef unsigned long long int qurt_pipe_data_t;
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  qurt_pipe_data_t *buffer;
  unsigned int elements, first, count, is_own;
} qurt_pipe_t;
typedef struct {
  qurt_pipe_data_t *buffer;
  unsigned int elements;
} qurt_pipe_attr_t;
void qurt_pipe_attr_init(qurt_pipe_attr_t *attr);
void qurt_pipe_attr_set_buffer(qurt_pipe_attr_t *attr, qurt_pipe_data_t *buffer);
void qurt_pipe_attr_set_elements(qurt_pipe_attr_t *attr, unsigned int elements);
void qurt_pipe_attr_set_buffer_partition(qurt_pipe_attr_t *attr, unsigned char mem_partition);
#define QURT_PIPE_ATTR_MEM_PARTITION_RAM 0
#define QURT_PIPE_ATTR_MEM_PARTITION_TCM 1
int qurt_pipe_create(qurt_pipe_t **pipe, qurt_pipe_attr_t *attr);
int qurt_pipe_init(qurt_pipe_t *pipe, qurt_pipe_attr_t *attr);
void qurt_pipe_destroy(qurt_pipe_t *pipe);
void qurt_pipe_delete(qurt_pipe_t *pipe);
void qurt_pipe_send(qurt_pipe_t *pipe, qurt_pipe_data_t data);
qurt_pipe_data_t qurt_pipe_receive(qurt_pipe_t *pipe);
int qurt_pipe_try_send(qurt_pipe_t *pipe, qurt_pipe_data_t data);
qurt_pipe_data_t qurt_pipe_try_receive(qurt_pipe_t *pipe, int *success);
int qurt_pipe_is_empty(qurt_pipe_t *pipe);

/* -- vector units: every thread has one */

typedef enum { QURT_HVX_MODE_64B = 0, QURT_HVX_MODE_128B = 1, QURT_HVX_MODE_64B_NO_RESERVATION = 2, QURT_HVX_MODE_128B_NO_RESERVATION = 3 } qurt_hvx_mode_t;
int qurt_hvx_lock(qurt_hvx_mode_t lock_mode);
int qurt_hvx_unlock(void);
int qurt_hvx_try_lock(qurt_hvx_mode_t lock_mode);
int qurt_hvx_get_mode(void);
/* As for two units of 128 bytes: 0x200. */
int qurt_hvx_get_units(void);
#define QURT_HVX_RESERVE_ALL 4
#define QURT_HVX_RESERVE_ALL_AVAILABLE 0xff
#define QURT_HVX_RESERVE_NOT_SUPPORTED (-1)
#define QURT_HVX_RESERVE_NOT_SUCCESSFUL (-2)
#define QURT_HVX_RESERVE_ALREADY_MADE (-3)
#define QURT_HVX_RESERVE_CANCEL_ERR (-4)
/* Returns how many units are reserved, or one of the codes above; locks do not need a reservation here. */
int qurt_hvx_reserve(int num_units);
int qurt_hvx_cancel_reserve(void);

/* -- memory; the board handles caches */

typedef enum {
  QURT_MEM_CACHE_FLUSH = 0,
  QURT_MEM_CACHE_INVALIDATE = 1,
  QURT_MEM_CACHE_FLUSH_INVALIDATE = 2,
  QURT_MEM_CACHE_FLUSH_ALL = 3,
  QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL = 4,
  QURT_MEM_CACHE_TABLE_FLUSH_INVALIDATE = 5,
  QURT_MEM_CACHE_FLUSH_INVALIDATE_L2 = 6,
} qurt_mem_cache_op_t;
typedef enum { QURT_MEM_ICACHE = 0, QURT_MEM_DCACHE = 1 } qurt_mem_cache_type_t;
int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode, qurt_mem_cache_type_t type);
int qurt_mem_l2cache_line_lock(qurt_addr_t addr, qurt_size_t size);
int qurt_mem_l2cache_line_unlock(qurt_addr_t addr, qurt_size_t size);
void *qurt_malloc(unsigned int size);
void *qurt_calloc(unsigned int elsize, unsigned int num);
void *qurt_realloc(void *ptr, int newsize);
void qurt_free(void *ptr);

/* -- event counters: not emulated, so they stay 0 */

#define QURT_PMUCNT0 0
#define QURT_PMUCNT1 1
#define QURT_PMUCNT2 2
#define QURT_PMUCNT3 3
#define QURT_PMUCFG 4
#define QURT_PMUEVTCFG 5
#define QURT_PMUCNT4 6
#define QURT_PMUCNT5 7
#define QURT_PMUCNT6 8
#define QURT_PMUCNT7 9
#define QURT_PMUEVTCFG1 10
void qurt_pmu_enable(int enable);
void qurt_pmu_set(int reg_id, unsigned int reg_value);
unsigned int qurt_pmu_get(int red_id);

/* -- clocks and the system */

/* Ticks of 19.2 MHz. */
unsigned long long qurt_sysclock_get_hw_ticks(void);
unsigned long long qurt_timer_get_ticks(void);
#define qurt_sysclock_timetick_to_us(ticks) qurt_timer_timetick_to_us(ticks)
#define QURT_TIMER_TIMETICK_TO_US(ticks) qurt_timer_timetick_to_us(ticks)
#define qurt_sysclock_timetick_from_us(us) qurt_timer_timetick_from_us(us)
#define QURT_TIMER_TIMETICK_FROM_US(us) qurt_timer_timetick_from_us(us)
unsigned long long qurt_timer_timetick_to_us(unsigned long long ticks);
unsigned long long qurt_timer_timetick_from_us(unsigned long long us);
unsigned long long qurt_get_core_pcycles(void);
typedef struct {
  unsigned int max_hthreads;
} qurt_sysenv_max_hthreads_t;
int qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t *mhwt);
typedef struct {
  unsigned int arch_version;
} qurt_arch_version_t;
/* The version that the image was compiled for, 0x73 for v73; on this machine the Snapdragon 865's, 0x66. */
int qurt_sysenv_get_arch_version(qurt_arch_version_t *vers);
/* Where the heap's first segment began, and where it ends now. */
typedef struct {
  qurt_addr_t heap_base, heap_limit;
} qurt_sysenv_app_heap_t;
int qurt_sysenv_get_app_heap(qurt_sysenv_app_heap_t *aheap);
/* The core's process on the host: its number, and its program's name. */
#define QURT_MAX_NAME_LEN 64
typedef struct {
  unsigned int asid;
  char name[QURT_MAX_NAME_LEN];
} qurt_sysenv_procname_t;
int qurt_sysenv_get_process_name(qurt_sysenv_procname_t *pname);
int qurt_process_get_id(void);
/* Emulator: 1.4, as a byte each, then two of a patch. */
unsigned int qurt_api_version(void);

#ifdef __cplusplus
}
#endif

#endif
