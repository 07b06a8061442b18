/* Threads and their synchronization, vector memory, clocks, power and the log, as Hexagon images use them. */
#define FARF_HIGH 1
#include "kernel.h"

#include <string.h>

#include "AEEstd.h"
#include "HAP_compute_res.h"
#include "HAP_etm_config.h"
#include "HAP_farf.h"
#include "HAP_mem.h"
#include "HAP_perf.h"
#include "HAP_pls.h"
#include "HAP_power.h"
#include "HAP_vtcm_mgr.h"
#include "hexagon_sim_timer.h"
#include "qurt.h"
#include "qurt/qurt_mutex.h" /* programs write a folder of the vendor's before some headers */
#include "qurt_atomic_ops.h"
#include "stddef/AEEStdErr.h"
#include "sysmon_cachelock.h"
#include "verify.h"
#include "worker_pool.h"

#ifdef __hexagon__
#define ARCH 0x67
#else
#define ARCH 0x66
#endif

#define MUST(is_so) \
  do {              \
    if (!(is_so)) { \
      *line = __LINE__; \
      return 0;     \
    }               \
  } while (0)

int kernel_open(const char *uri, remote_handle64 *h) { return *h = 1, uri ? 0 : AEE_EBADPARM; }
int kernel_close(remote_handle64 h) { return h == 1 ? 0 : AEE_EINVHANDLE; }

static qurt_mutex_t lock = QURT_MUTEX_INIT;
static qurt_sem_t ready;
static qurt_barrier_t barrier;
static qurt_signal_t signals;
static qurt_pipe_t *pipe_of_numbers;
static int sum, serial;
static int32_t word;

static void work(void *argument) {
  const int number = *(int *)argument;
  qurt_hvx_lock(QURT_HVX_MODE_128B);
  for (int at = 0; at < 500; at++) {
    qurt_mutex_lock(&lock);
    sum += number;
    qurt_mutex_unlock(&lock);
  }
  qurt_hvx_unlock();
  if (qurt_barrier_wait(&barrier) == QURT_BARRIER_SERIAL_THREAD) __atomic_fetch_add(&serial, 1, __ATOMIC_SEQ_CST);
  qurt_signal_set(&signals, 1u << number);
  qurt_pipe_send(pipe_of_numbers, (qurt_pipe_data_t)number);
  qurt_sem_up(&ready);
  while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST)) qurt_futex_wait(&word, 0);
  qurt_thread_exit(number * 10);
}

static int threads(int32_t *line) {
  qurt_thread_t made[4];
  qurt_thread_attr_t attributes;
  qurt_pipe_attr_t pipe_attributes;
  int numbers[4], status, total = 0;
  sum = serial = word = 0;
  qurt_sem_init_val(&ready, 0);
  qurt_barrier_init(&barrier, 4);
  qurt_signal_init(&signals);
  qurt_pipe_attr_init(&pipe_attributes);
  qurt_pipe_attr_set_elements(&pipe_attributes, 2);
  MUST(qurt_pipe_create(&pipe_of_numbers, &pipe_attributes) == QURT_EOK);
  qurt_thread_attr_init(&attributes);
  qurt_thread_attr_set_name(&attributes, "a worker with a long name");
  qurt_thread_attr_set_stack_size(&attributes, 16 << 10);
  qurt_thread_attr_set_priority(&attributes, 100);
  for (int at = 0; at < 4; at++) {
    numbers[at] = at + 1;
    MUST(qurt_thread_create(&made[at], &attributes, work, &numbers[at]) == QURT_EOK);
  }
  MUST(qurt_thread_get_priority(made[0]) == 100);
  for (int at = 0; at < 4; at++) total += (int)qurt_pipe_receive(pipe_of_numbers);
  for (int at = 0; at < 4; at++) qurt_sem_down(&ready);
  MUST(qurt_signal_wait_all(&signals, 0x1e) == 0x1e && total == 10 && qurt_sem_try_down(&ready));
  __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
  qurt_futex_wake(&word, 4);
  for (int at = 0; at < 4; at++) MUST(qurt_thread_join(made[at], &status) == QURT_EOK && status == (at + 1) * 10);
  MUST(sum == 500 * 10 && serial == 1 && qurt_pipe_is_empty(pipe_of_numbers));
  MUST(qurt_thread_join(made[0], &status) == QURT_ENOTHREAD);
  qurt_pipe_delete(pipe_of_numbers);
  qurt_signal_destroy(&signals);
  qurt_barrier_destroy(&barrier);
  qurt_sem_destroy(&ready);
  return 1;
}

static int vector_memory(int32_t *line) {
  unsigned bytes, pages, got;
  compute_res_attr_t attributes;
  compute_res_vtcm_page_t layout;
  void *memory;
  MUST(HAP_query_total_VTCM(&bytes, &pages) == 0 && bytes * pages == 256 << 10);
  void *half = HAP_request_VTCM(128 << 10, 1), *other = HAP_request_VTCM(128 << 10, 1);
  MUST(half && other && half != other && (uintptr_t)half % 2048 == 0 && !HAP_request_VTCM(1, 1));
  memset(half, 1, 128 << 10);
  MUST(HAP_release_VTCM(half) == 0 && HAP_release_VTCM(half) == AEE_EBADPARM);
  MUST(HAP_query_avail_VTCM(&bytes, NULL, NULL) == 0 && bytes == 128 << 10);
  HAP_compute_res_attr_init(&attributes);
  MUST(HAP_compute_res_attr_set_vtcm_param_v2(&attributes, 256 << 10, 0, 1 << 10) == 0);
  const unsigned context = HAP_compute_res_acquire(&attributes, 1000);
  MUST(context && HAP_compute_res_attr_get_vtcm_ptr_v2(&attributes, &memory, &got) == 0 && memory == half && got == 128 << 10);
  HAP_compute_res_attr_init(&attributes);
  HAP_compute_res_attr_set_vtcm_param(&attributes, 4096, 1);
  MUST(HAP_compute_res_acquire(&attributes, 0) == 0);
  MUST(HAP_compute_res_release(context) == 0 && HAP_compute_res_release(context) && HAP_release_VTCM(other) == 0);
  MUST(HAP_compute_res_query_VTCM(0, &bytes, &layout, &got, NULL) == 0 && got == bytes && layout.page_list[0].page_size == bytes);
  return 1;
}

static int cache(int32_t *line) {
  static char block[4096] __attribute__((aligned(32)));
  const int all = HAP_query_avail_cachelock();
  unsigned long long place;
  char *memory = HAP_cache_lock(4096, &place);
  MUST(memory && place == (uintptr_t)memory && HAP_cache_lock_addr(block, sizeof block) == 0);
  memset(memory, 1, 4096);
  MUST(HAP_query_total_cachelock() == 8192 && HAP_query_avail_cachelock() == all - 8192);
  MUST(HAP_cache_lock_addr(block + 1, 32) == AEE_EBADPARM && HAP_cache_unlock(block) == AEE_EBADPARM);
  MUST(!HAP_cache_lock((unsigned)all, &place) && !place && HAP_cache_unlock_addr(memory) == AEE_EBADPARM);
  MUST(HAP_cache_unlock(memory) == 0 && HAP_cache_unlock_addr(block) == 0 && HAP_query_avail_cachelock() == all);
  return 1;
}

enum { JOBS = 64 };

typedef struct {
  worker_pool_context_t pool;
  worker_synctoken_t left;
  unsigned int done;
} work_of_pool_t;

static void inner_job(void *argument) {
  work_of_pool_t *all = argument;
  worker_pool_atomic_inc_return(&all->done);
  worker_pool_synctoken_jobdone(&all->left);
}

static void outer_job(void *argument) {
  work_of_pool_t *all = argument;
  worker_pool_submit(all->pool, (worker_pool_job_t){inner_job, all}); /* runs at once: no worker waits for itself */
}

static int workers(int32_t *line) {
  work_of_pool_t all = {0};
  MUST(worker_pool_submit(NULL, (worker_pool_job_t){NULL, NULL}) == AEE_EBADPARM && worker_pool_available(NULL) == 1);
  for (int own = 0; own < 2; ++own) {
    MUST(!own || worker_pool_init_with_stack_size(&all.pool, 128 << 10) == 0);
    worker_pool_synctoken_init(&all.left, JOBS);
    for (int at = 0; at < JOBS; ++at) MUST(worker_pool_submit(all.pool, (worker_pool_job_t){at % 2 ? outer_job : inner_job, &all}) == 0);
    worker_pool_synctoken_wait(&all.left);
    MUST(all.done == JOBS * (own + 1u));
  }
  unsigned int priority = 0;
  MUST(worker_pool_set_thread_priority(all.pool, 100) == 0 && worker_pool_get_thread_priority(all.pool, &priority) == 0 && priority == 100);
  worker_pool_deinit(&all.pool);
  return !all.pool;
}

static unsigned clock_now(void) {
  HAP_power_response_t response = {.type = HAP_power_get_clk_Freq};
  return HAP_power_get(NULL, &response) ? 0 : response.clkFreqHz;
}

static int clocks(int32_t *line) {
  void *mine = HAP_utils_create_context();
  HAP_power_request_t request;
  const unsigned turbo = clock_now();
  MUST(HAP_power_set_core_corner(NULL, HAP_DCVS_VCORNER_NOM, 0, HAP_DCVS_VCORNER_MAX) == 0 && clock_now() == turbo / 4 * 3);
  MUST(HAP_power_set_core_corner(NULL, HAP_DCVS_VCORNER_TURBO, 0, HAP_DCVS_VCORNER_SVS) == 0 && clock_now() == turbo / 2);
  const uint64_t before = HAP_perf_get_time_us(), cycles = HAP_perf_get_pcycles();
  qurt_sleep(2000);
  const uint64_t counted = HAP_perf_get_pcycles() - cycles, took = HAP_perf_get_time_us() - before;
  MUST(counted >= 1999 * (turbo / 2000000) && counted <= (took + 1) * (turbo / 2000000));
  memset(&request, 0, sizeof request);
  request.type = HAP_power_set_mips_bw;
  request.mips_bw.set_mips = TRUE;
  request.mips_bw.mipsPerThread = 900;
  MUST(HAP_power_set(mine, &request) == 0 && clock_now() == 900000000); /* the highest vote counts */
  HAP_utils_destroy_context(mine);
  for (uintptr_t at = 1; at < 64; ++at) MUST(HAP_power_set((void *)at, &request) == 0);
  MUST(HAP_power_set((void *)64, &request) == HAP_POWER_ERR_UNKNOWN && HAP_power_destroy((void *)64) == 0);
  for (uintptr_t at = 1; at < 64; ++at) MUST(HAP_power_destroy((void *)at) == 0);
  MUST(clock_now() == turbo / 2 && HAP_power_destroy(NULL) == 0 && clock_now() == turbo);
  MUST(HAP_power_request(101, 0, 0) == HAP_POWER_ERR_INVALID_PARAM && HAP_power_request_abs(1, 0, 0) == 0);
  MUST(clock_now() == turbo / 20 * 7 && HAP_power_request_abs(100000, 0, 0) == 0 && clock_now() == turbo);
  MUST(HAP_power_request(0, 0, 0) == 0 && clock_now() == turbo);
  return 1;
}

static void end_of(void *value) { qurt_atomic_add(value, 1); }

static void keeps(void *argument) {
  void **keys = argument;
  const int key = *(int *)keys[0];
  if (!qurt_tls_get_specific(key)) qurt_tls_set_specific(key, keys[1]);
}

static int values_of_threads(int32_t *line) {
  unsigned ended = 0;
  int key, status;
  void *argument[] = {&key, &ended};
  qurt_thread_t made;
  qurt_thread_attr_t attributes;
  MUST(qurt_tls_create_key(NULL, NULL) == QURT_EINVALID && qurt_tls_create_key(&key, end_of) == QURT_EOK);
  MUST(!qurt_tls_get_specific(key) && qurt_tls_set_specific(key, &key) == QURT_EOK && qurt_tls_get_specific(key) == &key);
  qurt_thread_attr_init(&attributes);
  MUST(qurt_thread_create(&made, &attributes, keeps, argument) == QURT_EOK && qurt_thread_join(made, &status) == QURT_EOK);
  MUST(ended == 1 && qurt_tls_get_specific(key) == &key && qurt_tls_delete_key(key) == QURT_EOK);
  MUST(qurt_tls_delete_key(key) == QURT_ETLSENTRY && qurt_tls_delete_key(-1) == QURT_ETLSENTRY && qurt_tls_set_specific(0, line) == QURT_EINVALID);
  return 1;
}

static int atomics(int32_t *line) {
  unsigned words[2] = {0, 0}, *word32 = words;
  unsigned long long word64 = 1ull << 40;
  MUST(qurt_atomic_set(word32, 5) == 5 && qurt_atomic_inc_return(word32) == 6 && qurt_atomic_sub_return(word32, 2) == 4);
  MUST(qurt_atomic_compare_and_set(word32, 4, 8) && !qurt_atomic_compare_and_set(word32, 4, 9) && *word32 == 8);
  MUST(qurt_atomic_add_unless(word32, 1, 7) && !qurt_atomic_add_unless(word32, 1, 9) && qurt_atomic_and_return(word32, 1) == 1);
  qurt_atomic_set_bit(words, 33);
  qurt_atomic_clear_bit(words, 0);
  qurt_atomic_change_bit(words, 34);
  MUST(words[0] == 0 && words[1] == 6 && qurt_atomic64_dec_return(&word64) == (1ull << 40) - 1);
  qurt_atomic_barrier();
  return 1;
}

static int checked(int value) {
  int nErr = 0;
  VERIFYC(value, AEE_EBADPARM);
  VERIFY(value > 1);
bail:
  return nErr;
}

static int standard(int32_t *line) {
  char text[8];
  const char *end;
  AECHAR wide[4], source[] = {'a', 'b', 'c', 'd', 0};
  int error;
  MUST(std_strlcpy(text, "abc", sizeof text) == 3 && std_strlcat(text, "defghi", sizeof text) == 9 && !std_strcmp(text, "abcdefg"));
  MUST(std_memscpy(text, 2, "xyz", 3) == 2 && !std_strcmp(text, "xycdefg") && std_memscpy(text, -1, "q", 1) == 0);
  MUST(std_strends("a.so", ".so") && !std_strends("so", ".so") && !std_strcmp(std_strbegins("file:///x", "file:///"), "x"));
  MUST(std_memrchrbegin(text, '?', 3) == text && std_memchrend(text, '?', 3) == text + 3 && std_memrchr(text, 'c', 3) == text + 2);
  MUST(std_memstr(text, "cd", 4) == text + 2 && !std_memstr(text, "cd", 3) && !*std_strchrend(text, '?'));
  MUST(std_wstrlcpy(wide, source, 4) == 4 && std_wstrlen(wide) == 3 && std_wstrcmp(wide, source) < 0 && std_wstrrchr(wide, 'b') == wide + 1);
  MUST(std_scanul("0x1Fz", 0, &end, &error) == 31 && *end == 'z' && !error && std_scanul("-2", 10, NULL, &error) == (uint32_t)-2);
  MUST(error == STD_NEGATIVE && std_scanul("4294967296", 10, NULL, &error) == MAX_UINT32 && error == STD_OVERFLOW);
  MUST(std_scanul("z", 10, &end, &error) == 0 && *end == 'z' && error == STD_NODIGITS && std_scand("2.5e1", NULL) == 25.0);
  MUST(std_makepath("abcdef", "g", text, 4) == 8 && !std_strcmp(text, "abc") && std_makepath("ab", "c", text, 0) == 4 && !std_strcmp(text, "abc"));
  MUST(std_makepath("a/", "/b", text, sizeof text) == 3 && !std_strcmp(text, "a/b") && std_makepath("ab", "cdefgh", text, 4) == 9);
  MUST(!std_strcmp(text, "ab/") && !std_strcmp(std_basename("x/y.c"), "y.c"));
  MUST(std_snprintf(text, sizeof text, "%d!", 12345678) == 9 && !std_strcmp(text, "1234567") && std_htonl(1) == 1 << 24);
  MUST(checked(0) == AEE_EBADPARM && checked(1) == -1 && checked(2) == 0 && STD_BETWEEN(2, 2, 3) && STD_ARRAY_SIZE(wide) == 4);
  return 1;
}

static int made(void *ctx, void *data) { return *(int *)data = *(int *)ctx, *(int *)ctx < 0 ? AEE_EFAILED : 0; }
static void destroyed(void *data) { (void)data; }

/* Twice, by two calls of the method: the second one finds the value of the first. */
static int values_of_the_process(int32_t *line) {
  int first = 5;
  int bad = -1;
  void *one = NULL, *other = NULL;
  MUST(HAP_pls_add_lookup((uintptr_t)made, 1, sizeof first, made, &first, destroyed, &one) == 0 && *(int *)one == 5);
  first = 6;
  MUST(HAP_pls_add_lookup((uintptr_t)made, 1, sizeof first, made, &first, destroyed, &other) == 0 && one == other);
  MUST(HAP_pls_lookup((uintptr_t)made, 1, &other) == 0 && one == other && *(int *)one == 5);
  MUST(HAP_pls_add((uintptr_t)made, 1, sizeof first, made, &first, destroyed, &other) == AEE_EALREADY);
  MUST(HAP_pls_add((uintptr_t)made, 2, sizeof bad, made, &bad, destroyed, &other) == AEE_EFAILED);
  MUST(HAP_pls_lookup((uintptr_t)made, 2, &other) == AEE_ENOSUCH);
  MUST(HAP_pls_add((uintptr_t)made, 3, -1, NULL, NULL, NULL, &other) == AEE_ENOMEMORY);
  return 1;
}

static void wait_for_another(void *sem) { qurt_sem_down(sem); }

/* As the SDK's worker pools do: a counter and a semaphore in a structure of 20 bytes, which is gone after the wait. */
static int semaphores(int32_t *line) {
  for (int at = 0; at < 200; at++) {
    struct {
      unsigned counter;
      qurt_sem_t sem;
    } token;
    qurt_thread_t threads[2];
    qurt_thread_attr_t attributes;
    _Static_assert(sizeof token <= 20, "the vendor's has this room");
    qurt_thread_attr_init(&attributes);
    qurt_sem_init_val(&token.sem, 0);
    MUST(qurt_sem_try_down(&token.sem) == -1);
    for (int one = 0; one < 2; one++) MUST(qurt_thread_create(&threads[one], &attributes, wait_for_another, &token.sem) == QURT_EOK);
    if (at % 2) qurt_sem_add(&token.sem, 3);
    else qurt_sem_up(&token.sem), qurt_sem_up(&token.sem), qurt_sem_up(&token.sem);
    qurt_sem_down(&token.sem);
    for (int one = 0; one < 2; one++) MUST(qurt_thread_join(threads[one], NULL) == QURT_EOK);
    MUST(qurt_sem_get_val(&token.sem) == 0);
  }
  return 1;
}

static int process(int32_t *line) {
  qurt_sysenv_app_heap_t heap;
  qurt_sysenv_procname_t name;
  qurt_rmutex2_t again;
  struct HAP_mem_stats stats;
  MUST(qurt_sysenv_get_app_heap(NULL) == QURT_EVAL && qurt_sysenv_get_app_heap(&heap) == QURT_EOK && heap.heap_base <= heap.heap_limit);
  MUST(qurt_sysenv_get_process_name(NULL) == QURT_EVAL && qurt_sysenv_get_process_name(&name) == QURT_EOK && name.name[0]);
  MUST((int)name.asid == qurt_process_get_id() && qurt_api_version() >> 24 == 1);
  qurt_rmutex2_init(&again);
  qurt_rmutex2_lock(&again);
  MUST(qurt_rmutex2_try_lock(&again) == 0);
  qurt_rmutex2_unlock(&again);
  qurt_rmutex2_unlock(&again);
  qurt_rmutex2_destroy(&again);
  MUST(HAP_mem_get_stats(NULL) == AEE_EBADPARM && HAP_mem_get_stats(&stats) == 0 && stats.bytes_used && stats.bytes_free);
  MUST(stats.seg_used == 1 && stats.bytes_used % stats.min_grow_bytes == 0);
  return 1;
}

int kernel_check(remote_handle64 h, int32_t *line) {
  (void)h;
  char text[200];
  char *volatile found = memset(text, 'a', sizeof text);
  text[40] = '?', text[199] = 0;
  *line = 0;
  MUST(strchr(found, '?') == text + 40);
  if (!threads(line) || !vector_memory(line) || !workers(line) || !standard(line) || !cache(line)) return 0;
  if (!values_of_threads(line) || !atomics(line) || !process(line) || !values_of_the_process(line) || !semaphores(line)) return 0;
  MUST(HAP_user_etm_enable() == AEE_EUNSUPPORTED && qurt_pmu_get(QURT_PMUCNT0) == 0);
  const uint64_t begin = HAP_perf_get_time_us(), cycles = HAP_perf_get_pcycles(), ticks = HAP_perf_get_qtimer_count();
  MUST(qurt_hvx_reserve(5) == QURT_HVX_RESERVE_NOT_SUPPORTED && qurt_hvx_cancel_reserve() == QURT_HVX_RESERVE_CANCEL_ERR);
  MUST(qurt_hvx_reserve(QURT_HVX_RESERVE_ALL_AVAILABLE) == 4 && qurt_hvx_reserve(1) == QURT_HVX_RESERVE_ALREADY_MADE);
  MUST(qurt_hvx_cancel_reserve() == QURT_EOK);
  hexagon_sim_init_timer();
  hexagon_sim_start_timer();
  qurt_sleep(2000);
  hexagon_sim_end_timer();
  hexagon_sim_end_timer(); /* nothing runs: adds nothing */
  MUST(hbrt_sim_timer_sum >= 1440 * 1999 && hbrt_sim_timer_sum <= hexagon_sim_read_pcycles() - cycles);
  MUST(HAP_perf_get_time_us() >= begin + 2000 && HAP_perf_get_pcycles() >= cycles + 1440 * 1999);
  MUST(HAP_perf_qtimer_count_to_us(HAP_perf_get_qtimer_count() - ticks) >= 1999);
  if (!clocks(line)) return 0;
  HAP_power_request_t request;
  HAP_power_response_t response = {.type = HAP_power_get_client_class};
  memset(&request, 0, sizeof request);
  request.type = HAP_power_set_apptype;
  request.apptype = HAP_POWER_COMPUTE_CLIENT_CLASS;
  MUST(HAP_power_set(NULL, &request) == 0 && HAP_power_get(NULL, &response) == 0 && response.client_class == HAP_POWER_COMPUTE_CLIENT_CLASS);
  memset(&request, 0, sizeof request);
  request.type = HAP_power_set_HMX_v2;
  request.hmx_v2.set_clock = TRUE;
  request.hmx_v2.target_corner = request.hmx_v2.min_corner = request.hmx_v2.max_corner = HAP_DCVS_EXP_VCORNER_MAX;
  request.hmx_v2.perf_mode = HAP_CLK_PERF_HIGH;
  response.type = HAP_power_get_hmx_core_clk_Freq;
  MUST(HAP_power_set(NULL, &request) == 0 && HAP_power_get(NULL, &response) == 0 && response.clkFreqHz == clock_now());
  request.type = (HAP_Power_request_type)99;
  MUST(HAP_power_set(NULL, &request) == HAP_POWER_ERR_INVALID_PARAM);
  HAP_power_set_dcvs_v3_init(&request);
  HAP_set_dcvs_v3_protected_bus_corners(&request, TRUE);
  MUST(HAP_power_set(NULL, &request) == 0);
  MUST(HAP_mem_available_stack() > 1024);
  qurt_arch_version_t version;
  MUST(qurt_sysenv_get_arch_version(&version) == QURT_EOK && version.arch_version == ARCH && qurt_sysenv_get_arch_version(NULL) == QURT_EVAL);
  MUST(qurt_timer_timetick_to_us(192) == 10 && qurt_timer_timetick_from_us(10) == 192);
  FARF(ERROR, "a record with %d and %s", 7, "text");
  FARF(LOW, "not compiled %d", 1);
  FARF(RUNTIME_HIGH, "not allowed yet");
  HAP_setFARFRuntimeLoggingParams(1 << HAP_LEVEL_ERROR, NULL, 0);
  FARF(RUNTIME_ERROR, "allowed at run time");
  return 0;
}

int kernel_board(remote_handle64 h, uint32_t *vtcm_bytes, uint32_t *clock_hz) {
  HAP_power_response_t response = {.type = HAP_power_get_clk_Freq};
  unsigned pages;
  (void)h;
  const int code = HAP_query_total_VTCM(vtcm_bytes, &pages) || HAP_power_get(NULL, &response);
  *clock_hz = response.clkFreqHz;
  return code;
}
