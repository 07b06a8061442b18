/* HAP: log, clocks, power votes, memory and vector memory for images; on this machine and on a Hexagon. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "AEEStdErr.h"
#include "HAP_compute_res.h"
#include "HAP_etm_config.h"
#include "HAP_farf.h"
#include "HAP_mem.h"
#include "HAP_perf.h"
#include "HAP_pls.h"
#include "HAP_power.h"
#include "HAP_ps.h"
#include "HAP_vtcm_mgr.h"
#include "remote.h"
#include "sysmon_cachelock.h"
#include "hb_dsp.h"
#include "runtime.h"

enum { VTCM_UNIT = 2048, CONTEXTS = 32, MAX_FILES = 32, PAUSE_US = 100, MAX_MAPPED = 256 };

/* -- values of the board's profile: the core has them in its environment; the initial values are for a program without
 * one */

static unsigned clock_mhz = 1440, vtcm_bytes = 256 << 10;
static uint8_t *vtcm;
static uint16_t *unit_of; /* for each unit, the number of its request, 0 if free */

__attribute__((constructor)) static void read_profile(void) { /* outside any call, whose memory is limited */
  const char *clock = getenv("HBRT_DSP_CLOCK_MHZ"), *bytes = getenv("HBRT_DSP_VTCM_BYTES");
  if (clock) clock_mhz = (unsigned)atoi(clock);
  if (bytes) vtcm_bytes = (unsigned)atoi(bytes) / VTCM_UNIT * VTCM_UNIT;
  vtcm = aligned_alloc(VTCM_UNIT, vtcm_bytes + VTCM_UNIT);
  unit_of = calloc(vtcm_bytes / VTCM_UNIT + 1, sizeof *unit_of);
  if (!vtcm || !unit_of) vtcm_bytes = 0;
}

/* -- the log */

static unsigned runtime_mask;
static char runtime_files[MAX_FILES][128];
static unsigned runtime_file_count;

static const char *short_name(const char *file) {
  const char *slash = strrchr(file, '/');
  return slash ? slash + 1 : file;
}

static int is_allowed(int level, const char *file) {
  if (!(level & HAP_LEVEL_RUNTIME)) return 1;
  if (!(runtime_mask >> (level & ~HAP_LEVEL_RUNTIME) & 1)) return 0;
  for (unsigned at = 0; at < runtime_file_count; ++at)
    if (!strcmp(short_name(file), short_name(runtime_files[at]))) return 1;
  return !runtime_file_count;
}

static void write_record(int level, const char *file, int line, const char *format, va_list arguments) {
  static const int levels[] = {HB_DSP_LOG_DEBUG, HB_DSP_LOG_INFO, HB_DSP_LOG_INFO, HB_DSP_LOG_ERROR, HB_DSP_LOG_FATAL, HB_DSP_LOG_FATAL};
  char text[1024];
  if (!is_allowed(level, file)) return;
  const unsigned plain = (unsigned)(level & ~HAP_LEVEL_RUNTIME);
  vsnprintf(text, sizeof text, format, arguments);
  hb_dsp_log(levels[plain < 6 ? plain : 2], "%s:%d: %s", short_name(file), line, text);
}

EXPORT void HAP_debug_v2(int level, const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_record(level, file, line, format, arguments);
  va_end(arguments);
}

EXPORT void HAP_debug_runtime(int level, const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_record(level | HAP_LEVEL_RUNTIME, file, line, format, arguments);
  va_end(arguments);
}

EXPORT void HAP_debug(const char *msg, int level, const char *filename, int line) { HAP_debug_v2(level, filename, line, "%s", msg); }

EXPORT int HAP_setFARFRuntimeLoggingParams(unsigned int mask, const char *files[], unsigned short num_files) {
  if (num_files > MAX_FILES || (num_files && !files)) return AEE_EBADPARM;
  for (unsigned at = 0; at < num_files; ++at) snprintf(runtime_files[at], sizeof runtime_files[at], "%s", files[at]);
  runtime_file_count = num_files;
  runtime_mask = mask;
  return 0;
}

/* -- clocks */

static uint64 now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64)now.tv_sec * 1000000000 + (uint64)now.tv_nsec;
}

EXPORT uint64 HAP_perf_get_time_us(void) { return now_ns() / 1000; }
EXPORT uint64 HAP_perf_get_qtimer_count(void) { return now_ns() * 12 / 625; } /* 19.2 MHz */
EXPORT uint64 HAP_perf_qtimer_count_to_us(uint64 count) { return count * 10 / 192; }

/* Cycles of the process at the clocks it has voted for: those until the last change, and those since. */
static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned now_mhz; /* 0: clock_mhz, since the machine started */
static uint64 changed_us, changed_cycles;

/* The caller holds the lock. */
static unsigned current_mhz(void) { return now_mhz ? now_mhz : clock_mhz; }
static uint64 cycles_at(uint64 us) { return changed_cycles + (us - changed_us) * current_mhz(); }

EXPORT uint64 HAP_perf_get_pcycles(void) {
  pthread_mutex_lock(&clock_lock);
  const uint64 cycles = cycles_at(now_ns() / 1000);
  pthread_mutex_unlock(&clock_lock);
  return cycles;
}

EXPORT int HAP_timer_sleep(unsigned long long sleep_duration) {
  const struct timespec pause = {(time_t)(sleep_duration / 1000000), (long)(sleep_duration % 1000000 * 1000)};
  return nanosleep(&pause, NULL) ? AEE_EINTERRUPTED : 0;
}

/* -- power */

enum { MAX_VOTES = 64 };
static unsigned client_class;
static boolean is_scaling = TRUE;
static struct {
  int is_used;
  void *context; /* NULL counts as a context, too */
  unsigned corner_mhz, least_mhz; /* 0 if none */
} votes[MAX_VOTES];

/* The clock of a voltage corner, in MHz. No figures are public: assumed shares of the profile's clock, which is
 * turbo's. */
static unsigned mhz_of(unsigned corner) {
  static const unsigned percent[] = {0, 35, 50, 62, 75, 85};
  return clock_mhz * (corner < sizeof percent / sizeof *percent ? percent[corner] : 100) / 100;
}

/* The highest vote counts; without votes, the clock is the profile's. */
static void apply_votes(void) {
  unsigned mhz = 0;
  for (int at = 0; at < MAX_VOTES; ++at) {
    if (!votes[at].is_used) continue;
    if (votes[at].corner_mhz > mhz) mhz = votes[at].corner_mhz;
    if (votes[at].least_mhz > mhz) mhz = votes[at].least_mhz;
  }
  const uint64 us = now_ns() / 1000;
  changed_cycles = cycles_at(us), changed_us = us;
  now_mhz = mhz && mhz < mhz_of(HAP_DCVS_VCORNER_SVS2) ? mhz_of(HAP_DCVS_VCORNER_SVS2) : mhz < clock_mhz ? mhz : clock_mhz;
}

/* Change a context's vote: its corner, or its minimum clock. A value of 0 withdraws it. */
static int vote(void *context, int is_corner, unsigned mhz) {
  pthread_mutex_lock(&clock_lock);
  int at = 0, code = 0;
  while (at < MAX_VOTES && !(votes[at].is_used && votes[at].context == context)) ++at;
  for (int free_at = 0; mhz && at == MAX_VOTES && free_at < MAX_VOTES; ++free_at)
    if (!votes[free_at].is_used) votes[at = free_at].context = context;
  if (at == MAX_VOTES) code = mhz ? HAP_POWER_ERR_UNKNOWN : 0;
  else {
    *(is_corner ? &votes[at].corner_mhz : &votes[at].least_mhz) = mhz;
    votes[at].is_used = votes[at].corner_mhz || votes[at].least_mhz;
    apply_votes();
  }
  pthread_mutex_unlock(&clock_lock);
  return code;
}

/* The target, limited to the lowest and highest corner; without a target, scaling may use the highest. */
static int vote_corners(void *context, const HAP_dcvs_params_t *asked) {
  unsigned corner = asked->target_corner;
  if (corner == HAP_DCVS_VCORNER_DISABLE) corner = asked->max_corner;
  if (asked->max_corner != HAP_DCVS_VCORNER_DISABLE && corner > (unsigned)asked->max_corner) corner = asked->max_corner;
  if (corner < (unsigned)asked->min_corner) corner = asked->min_corner;
  return vote(context, 1, mhz_of(corner));
}

EXPORT int HAP_power_set(void *context, HAP_power_request_t *request) {
  if (!request || request->type < HAP_power_set_mips_bw || request->type > HAP_power_set_HMX_v2) return HAP_POWER_ERR_INVALID_PARAM;
  if (request->type == HAP_power_set_apptype) client_class = request->apptype;
  if (request->type == HAP_power_set_DCVS) is_scaling = request->dcvs.dcvs_enable;
  if (request->type == HAP_power_set_DCVS_v2) is_scaling = request->dcvs_v2.dcvs_enable;
  if (request->type == HAP_power_set_DCVS_v3 && request->dcvs_v3.set_dcvs_enable) is_scaling = request->dcvs_v3.dcvs_enable;
  if (request->type == HAP_power_set_mips_bw && request->mips_bw.set_mips) return vote(context, 0, request->mips_bw.mipsPerThread);
  if (request->type == HAP_power_set_DCVS_v2 && request->dcvs_v2.set_dcvs_params) return vote_corners(context, &request->dcvs_v2.dcvs_params);
  if (request->type == HAP_power_set_DCVS_v3 && request->dcvs_v3.set_core_params) return vote_corners(context, &request->dcvs_v3.core_params);
  return 0;
}

EXPORT int HAP_power_get(void *context, HAP_power_response_t *response) {
  (void)context;
  if (!response) return HAP_POWER_ERR_INVALID_PARAM;
  switch (response->type) {
    case HAP_power_get_max_mips: response->max_mips = clock_mhz; return 0;
    case HAP_power_get_max_bus_bw: response->max_bus_bw = UINT64_C(13600000000); return 0;
    case HAP_power_get_client_class: response->client_class = client_class; return 0;
    case HAP_power_get_clk_Freq:
    case HAP_power_get_hmx_core_clk_Freq:
      pthread_mutex_lock(&clock_lock);
      response->clkFreqHz = current_mhz() * 1000000u;
      pthread_mutex_unlock(&clock_lock);
      return 0;
    case HAP_power_get_aggregateAVSMpps: response->aggregateAVSMpps = clock_mhz; return 0;
    case HAP_power_get_dcvsEnabled: response->dcvsEnabled = is_scaling; return 0;
  }
  return HAP_POWER_ERR_INVALID_PARAM;
}

EXPORT int HAP_power_destroy(void *context) {
  vote(context, 1, 0);
  return vote(context, 0, 0);
}
EXPORT void *HAP_utils_create_context(void) { return malloc(1); }
EXPORT void HAP_utils_destroy_context(void *context) {
  HAP_power_destroy(context);
  free(context);
}
EXPORT int HAP_power_destroy_client(void *context) { return HAP_utils_destroy_context(context), 0; }

EXPORT int HAP_power_request_abs(int clock, int bus, int latency) {
  return (void)bus, (void)latency, clock < 0 ? HAP_POWER_ERR_INVALID_PARAM : vote(NULL, 0, (unsigned)clock);
}
EXPORT int HAP_power_request(int clock, int bus, int latency) {
  return clock > 100 ? HAP_POWER_ERR_INVALID_PARAM : HAP_power_request_abs(clock < 0 ? clock : (int)clock_mhz * clock / 100, bus, latency);
}

static int set_v3(void *context, const HAP_power_dcvs_v3_payload *asked) {
  HAP_power_request_t request;
  memset(&request, 0, sizeof request);
  request.type = HAP_power_set_DCVS_v3;
  request.dcvs_v3 = *asked;
  return HAP_power_set(context, &request);
}

EXPORT int HAP_power_set_dcvs_option(void *context, boolean dcvs_enable, HAP_power_dcvs_v2_payload_option dcvs_option) {
  return set_v3(context, &(HAP_power_dcvs_v3_payload){.set_dcvs_enable = TRUE, .dcvs_enable = dcvs_enable, .dcvs_option = dcvs_option});
}
EXPORT int HAP_power_set_sleep_latency(void *context, uint32 latency) {
  return set_v3(context, &(HAP_power_dcvs_v3_payload){.set_latency = TRUE, .latency = latency});
}
static HAP_dcvs_params_t corners(uint32 target_corner, uint32 min_corner, uint32 max_corner) {
  return (HAP_dcvs_params_t){(HAP_dcvs_voltage_corner_t)target_corner, (HAP_dcvs_voltage_corner_t)min_corner, (HAP_dcvs_voltage_corner_t)max_corner, 0, 0, 0};
}
EXPORT int HAP_power_set_core_corner(void *context, uint32 target_corner, uint32 min_corner, uint32 max_corner) {
  return set_v3(context, &(HAP_power_dcvs_v3_payload){.set_core_params = TRUE, .core_params = corners(target_corner, min_corner, max_corner)});
}
EXPORT int HAP_power_set_bus_corner(void *context, uint32 target_corner, uint32 min_corner, uint32 max_corner) {
  return set_v3(context, &(HAP_power_dcvs_v3_payload){.set_bus_params = TRUE, .bus_params = corners(target_corner, min_corner, max_corner)});
}
EXPORT int HAP_power_set_sleep_mode(void *context, boolean sleep_disable) {
  return set_v3(context, &(HAP_power_dcvs_v3_payload){.set_sleep_disable = TRUE, .sleep_disable = sleep_disable});
}

EXPORT int HAP_user_etm_enable(void) { return AEE_EUNSUPPORTED; }
EXPORT int HAP_user_etm_disable(void) { return AEE_EUNSUPPORTED; }

/* -- memory */

static struct {
  void *address;
  int fd;
} mapped[MAX_MAPPED];
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT void *HAP_mmap2(void *addr, size_t len, int prot, int flags, int fd, long offset) {
  void *start, *made = (void *)-1;
  uint32_t length;
  (void)addr, (void)prot, (void)flags;
  if (adsp_mmap_fd_getinfo(fd, &length) || offset < 0 || (size_t)offset > length || len > length - (size_t)offset) return made;
  if (HAP_mmap_get(fd, &start, NULL)) return made;
  pthread_mutex_lock(&mapped_lock);
  for (int at = 0; at < MAX_MAPPED && made == (void *)-1; ++at)
    if (!mapped[at].address) mapped[at].address = made = (char *)start + offset, mapped[at].fd = fd;
  pthread_mutex_unlock(&mapped_lock);
  if (made == (void *)-1) HAP_mmap_put(fd);
  return made;
}

EXPORT int HAP_munmap2(void *addr, size_t len) {
  int fd = -1;
  (void)len;
  pthread_mutex_lock(&mapped_lock);
  for (int at = 0; at < MAX_MAPPED && fd < 0; ++at)
    if (addr && mapped[at].address == addr) fd = mapped[at].fd, mapped[at].address = NULL;
  pthread_mutex_unlock(&mapped_lock);
  return fd < 0 ? AEE_ENOSUCHMAP : HAP_mmap_put(fd);
}

EXPORT void *HAP_mmap(void *addr, int len, int prot, int flags, int fd, long offset) {
  return len < 0 ? (void *)-1 : HAP_mmap2(addr, (size_t)len, prot, flags, fd, offset);
}
EXPORT int HAP_munmap(void *addr, int len) { return len < 0 ? AEE_EBADPARM : HAP_munmap2(addr, (size_t)len); }

EXPORT int HAP_malloc(uint32 bytes, void **pptr) {
  if (!pptr) return AEE_EBADPARM;
  *pptr = malloc(bytes ? bytes : 1);
  return *pptr ? 0 : AEE_ENOMEMORY;
}
EXPORT int HAP_free(void *ptr) { return free(ptr), 0; }
EXPORT int HAP_mem_set_grow_size(uint64 min, uint64 max) { return min <= max ? 0 : AEE_EBADPARM; }
EXPORT int HAP_mem_get_stats(struct HAP_mem_stats *stats) {
  const uint64 page = (uint64)sysconf(_SC_PAGESIZE);
  unsigned long total, resident;
  FILE *file = stats ? fopen("/proc/self/statm", "r") : NULL;
  const int read = file ? fscanf(file, "%lu %lu", &total, &resident) : 0;
  if (file) fclose(file);
  if (!stats) return AEE_EBADPARM;
  if (read != 2) return AEE_EFAILED;
  *stats = (struct HAP_mem_stats){(uint64)sysconf(_SC_AVPHYS_PAGES) * page, resident * page, 0, 1, page};
  return 0;
}

/* -- memory locked in the cache */

enum { LOCKABLE_BYTES = 512 << 10, CACHE_LINE = 32 };
static struct {
  void *address; /* NULL if the entry is free */
  unsigned bytes;
  int is_ours;
} locked[MAX_MAPPED];
static unsigned locked_bytes;

/* Record a range: 0, or AEE_ENOMEMORY. */
static int lock_range(void *address, unsigned bytes, int is_ours) {
  int code = AEE_ENOMEMORY;
  pthread_mutex_lock(&mapped_lock);
  for (int at = 0; at < MAX_MAPPED && code && bytes <= LOCKABLE_BYTES - locked_bytes; ++at) {
    if (locked[at].address) continue;
    locked[at].address = address, locked[at].bytes = bytes, locked[at].is_ours = is_ours;
    locked_bytes += bytes;
    code = 0;
  }
  pthread_mutex_unlock(&mapped_lock);
  return code;
}

static int unlock_range(void *address, int is_ours) {
  int code = AEE_EBADPARM;
  pthread_mutex_lock(&mapped_lock);
  for (int at = 0; at < MAX_MAPPED && code && address; ++at) {
    if (locked[at].address != address || locked[at].is_ours != is_ours) continue;
    locked_bytes -= locked[at].bytes;
    locked[at].address = NULL;
    code = 0;
  }
  pthread_mutex_unlock(&mapped_lock);
  return code;
}

EXPORT void *HAP_cache_lock(unsigned int size, unsigned long long *paddr_ptr) {
  void *made = NULL;
  if (size && size <= LOCKABLE_BYTES && posix_memalign(&made, 128, size)) made = NULL;
  if (made && lock_range(made, size, 1)) free(made), made = NULL;
  if (paddr_ptr) *paddr_ptr = (uintptr_t)made;
  return made;
}

EXPORT int HAP_cache_unlock(void *vaddr_ptr) {
  const int code = unlock_range(vaddr_ptr, 1);
  if (!code) free(vaddr_ptr);
  return code;
}

EXPORT int HAP_cache_lock_addr(void *vaddr_ptr, unsigned int size) {
  if (!vaddr_ptr || !size || (uintptr_t)vaddr_ptr % CACHE_LINE || size % CACHE_LINE) return AEE_EBADPARM;
  return lock_range(vaddr_ptr, size, 0);
}
EXPORT int HAP_cache_unlock_addr(void *vaddr_ptr) { return unlock_range(vaddr_ptr, 0); }
EXPORT int HAP_query_avail_cachelock(void) { return (int)(LOCKABLE_BYTES - locked_bytes); }
EXPORT int HAP_query_total_cachelock(void) { return (int)locked_bytes; }

/* The first thread's stack grows down from about here; a Hexagon's C library does not report its end. */
static pthread_t first_thread;
static uintptr_t first_place;
__attribute__((constructor)) static void remember_stack(void) {
  char here;
  first_thread = pthread_self();
  first_place = (uintptr_t)&here;
}

EXPORT uint64 HAP_mem_available_stack(void) {
  pthread_attr_t attributes;
  struct rlimit limit;
  void *start = NULL;
  size_t size = 0;
  char here;
  if (pthread_equal(pthread_self(), first_thread)) {
    const uintptr_t used = first_place > (uintptr_t)&here ? first_place - (uintptr_t)&here : 0;
    return getrlimit(RLIMIT_STACK, &limit) || used > limit.rlim_cur ? 0 : (uint64)(limit.rlim_cur - used);
  }
  if (pthread_getattr_np(pthread_self(), &attributes)) return 0;
  pthread_attr_getstack(&attributes, &start, &size);
  pthread_attr_destroy(&attributes);
  return (uint64)((uintptr_t)&here - (uintptr_t)start);
}

/* -- the vector memory: units of 2048 bytes */

static pthread_mutex_t vtcm_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned largest_free(void) {
  unsigned best = 0, run = 0;
  for (unsigned at = 0; at < vtcm_bytes / VTCM_UNIT; ++at) {
    run = unit_of[at] ? 0 : run + 1;
    if (run > best) best = run;
  }
  return best * VTCM_UNIT;
}

static void *take(unsigned size) {
  static uint16_t last;
  const unsigned units = (size + VTCM_UNIT - 1) / VTCM_UNIT;
  unsigned run = 0;
  if (!size || size > vtcm_bytes) return NULL;
  for (unsigned at = 0; at < vtcm_bytes / VTCM_UNIT; ++at) {
    run = unit_of[at] ? 0 : run + 1;
    if (run < units) continue;
    if (!++last) ++last;
    for (unsigned each = 0; each < units; ++each) unit_of[at - each] = last;
    return vtcm + (at + 1 - units) * VTCM_UNIT;
  }
  return NULL;
}

EXPORT void *HAP_request_VTCM(unsigned int size, unsigned int single_page_flag) {
  (void)single_page_flag;
  pthread_mutex_lock(&vtcm_lock);
  void *made = take(size);
  pthread_mutex_unlock(&vtcm_lock);
  return made;
}

EXPORT void *HAP_request_async_VTCM(unsigned int size, unsigned int single_page_flag, unsigned int timeout_us) {
  const uint64 end = HAP_perf_get_time_us() + timeout_us;
  void *made;
  while (!(made = HAP_request_VTCM(size, single_page_flag)) && size <= vtcm_bytes && HAP_perf_get_time_us() < end) HAP_timer_sleep(PAUSE_US);
  return made;
}

EXPORT int HAP_release_VTCM(void *pVA) {
  const uintptr_t offset = (uintptr_t)pVA - (uintptr_t)vtcm;
  if (offset >= vtcm_bytes || offset % VTCM_UNIT) return AEE_EBADPARM;
  pthread_mutex_lock(&vtcm_lock);
  const uint16_t number = unit_of[offset / VTCM_UNIT];
  for (unsigned at = 0; at < vtcm_bytes / VTCM_UNIT; ++at)
    if (number && unit_of[at] == number) unit_of[at] = 0;
  pthread_mutex_unlock(&vtcm_lock);
  return number ? 0 : AEE_EBADPARM;
}

EXPORT int HAP_query_total_VTCM(unsigned int *page_size, unsigned int *page_count) {
  if (page_size) *page_size = vtcm_bytes;
  if (page_count) *page_count = 1;
  return 0;
}

EXPORT int HAP_query_avail_VTCM(unsigned int *avail_block_size, unsigned int *max_page_size, unsigned int *num_pages) {
  pthread_mutex_lock(&vtcm_lock);
  const unsigned free_bytes = largest_free();
  pthread_mutex_unlock(&vtcm_lock);
  if (avail_block_size) *avail_block_size = free_bytes;
  if (max_page_size) *max_page_size = free_bytes;
  if (num_pages) *num_pages = free_bytes ? 1 : 0;
  return 0;
}

/* -- contexts; an attribute's eight words: 0 the requested bytes, 1 the minimum, 2 the allocated address, 3 its size */

static void *contexts[CONTEXTS]; /* memory of each; `vtcm + vtcm_bytes` if none */

EXPORT int HAP_compute_res_attr_init(compute_res_attr_t *attr) {
  if (!attr) return AEE_EBADPARM;
  memset(attr, 0, sizeof *attr);
  return 0;
}
#define ACCEPTED(...)                   \
  {                                     \
    (void)attr, __VA_ARGS__;            \
    return attr ? 0 : AEE_EBADPARM;     \
  }
EXPORT int HAP_compute_res_attr_set_serialize(compute_res_attr_t *attr, unsigned char b_serialize) ACCEPTED((void)b_serialize)
EXPORT int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t *attr, unsigned char b_enable) ACCEPTED((void)b_enable)
EXPORT int HAP_compute_res_attr_set_app_type(compute_res_attr_t *attr, unsigned int application_id) ACCEPTED((void)application_id)
EXPORT int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t *attr, unsigned char b_enable) ACCEPTED((void)b_enable)
EXPORT int HAP_compute_res_attr_set_release_callback(compute_res_attr_t *attr, int (*release_callback)(unsigned int, void *), void *client_context)
    ACCEPTED((void)release_callback, (void)client_context)

EXPORT int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned int min_page_size,
                                                  unsigned int min_vtcm_size) {
  (void)min_page_size;
  if (!attr || vtcm_size > vtcm_bytes || min_vtcm_size > vtcm_size) return AEE_EBADPARM;
  attr->attributes[0] = vtcm_size, attr->attributes[1] = min_vtcm_size;
  return 0;
}

EXPORT int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned char b_single_page) {
  return (void)b_single_page, HAP_compute_res_attr_set_vtcm_param_v2(attr, vtcm_size, 0, vtcm_size);
}

EXPORT void *HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t *attr) { return attr ? (void *)(uintptr_t)attr->attributes[2] : NULL; }

EXPORT int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attr, void **vtcm_ptr, unsigned int *vtcm_size) {
  if (!attr || !vtcm_ptr || !vtcm_size) return AEE_EBADPARM;
  *vtcm_ptr = HAP_compute_res_attr_get_vtcm_ptr(attr);
  *vtcm_size = (unsigned)attr->attributes[3];
  return 0;
}

EXPORT int HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int *total_block_size, compute_res_vtcm_page_t *total_block_layout,
                                      unsigned int *avail_block_size, compute_res_vtcm_page_t *avail_block_layout) {
  unsigned free_bytes;
  (void)application_id;
  HAP_query_avail_VTCM(&free_bytes, NULL, NULL);
  if (total_block_size) *total_block_size = vtcm_bytes;
  if (total_block_layout) *total_block_layout = (compute_res_vtcm_page_t){vtcm_bytes, 1, {{vtcm_bytes, 1}}};
  if (avail_block_size) *avail_block_size = free_bytes;
  if (avail_block_layout) *avail_block_layout = (compute_res_vtcm_page_t){free_bytes, free_bytes ? 1 : 0, {{free_bytes, free_bytes ? 1 : 0}}};
  return 0;
}

EXPORT unsigned int HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned int timeout_us) {
  if (!attr) return 0;
  const unsigned asked = (unsigned)attr->attributes[0], least = (unsigned)attr->attributes[1];
  unsigned bytes = asked;
  void *memory = vtcm + vtcm_bytes;
  if (asked) {
    memory = HAP_request_async_VTCM(least, 1, timeout_us);
    if (memory && least < asked) { /* as much as is free */
      HAP_release_VTCM(memory);
      pthread_mutex_lock(&vtcm_lock);
      bytes = largest_free() < asked ? largest_free() : asked;
      memory = bytes < least ? NULL : take(bytes);
      pthread_mutex_unlock(&vtcm_lock);
    }
    if (!memory) return 0;
    attr->attributes[2] = (uintptr_t)memory, attr->attributes[3] = bytes;
  }
  pthread_mutex_lock(&vtcm_lock);
  unsigned at = 0;
  while (at < CONTEXTS && contexts[at]) ++at;
  if (at < CONTEXTS) contexts[at] = memory;
  pthread_mutex_unlock(&vtcm_lock);
  if (at == CONTEXTS && asked) HAP_release_VTCM(memory);
  return at < CONTEXTS ? at + 1 : 0;
}

static int known(unsigned context_id) { return context_id && context_id <= CONTEXTS && contexts[context_id - 1] ? 0 : AEE_EBADPARM; }

EXPORT int HAP_compute_res_release(unsigned int context_id) {
  if (known(context_id)) return AEE_EBADPARM;
  void *memory = contexts[context_id - 1];
  contexts[context_id - 1] = NULL;
  return memory == vtcm + vtcm_bytes ? 0 : HAP_release_VTCM(memory);
}
EXPORT int HAP_compute_res_acquire_cached(unsigned int context_id, unsigned int timeout_us) { return (void)timeout_us, known(context_id); }
EXPORT int HAP_compute_res_release_cached(unsigned int context_id) { return known(context_id); }
EXPORT int HAP_compute_res_hmx_lock(unsigned int context_id) { return known(context_id); }
EXPORT int HAP_compute_res_hmx_unlock(unsigned int context_id) { return known(context_id); }
EXPORT int HAP_compute_res_hmx_lock2(unsigned int context_id, unsigned char type) { return (void)type, known(context_id); }
EXPORT int HAP_compute_res_hmx_unlock2(unsigned int context_id, unsigned char type) { return (void)type, known(context_id); }
EXPORT int HAP_compute_res_update_priority(unsigned int context_id, unsigned int priority) { return (void)priority, known(context_id); }
EXPORT int HAP_compute_res_check_release_request(unsigned int context_id) { return (void)context_id, 0; }

/* -- the process */

EXPORT int HAP_set_process_name(char *name) { return name ? 0 : AEE_EBADPARM; }
EXPORT int HAP_thread_migrate(int tidQ) { return (void)tidQ, 0; }
EXPORT int HAP_send_early_signal(uint32_t tidQ, uint32_t earlyWakeTime) { return (void)tidQ, (void)earlyWakeTime, 0; }
EXPORT int fastrpc_send_early_signal(uint32_t tidQ, uint32_t earlyWakeTime) { return HAP_send_early_signal(tidQ, earlyWakeTime); }
EXPORT int HAP_get_thread_priority_ceiling(void) { return 1; }

/* -- values of the process */

static struct value {
  struct value *next;
  uintptr_t type, key;
  max_align_t data[];
} *values;
static pthread_mutex_t values_lock = PTHREAD_MUTEX_INITIALIZER;

static struct value *value_of(uintptr_t type, uintptr_t key) {
  struct value *found = values;
  while (found && (found->type != type || found->key != key)) found = found->next;
  return found;
}

EXPORT int HAP_pls_lookup(uintptr_t type, uintptr_t key, void **ppo) {
  pthread_mutex_lock(&values_lock);
  struct value *found = value_of(type, key);
  pthread_mutex_unlock(&values_lock);
  if (found) *ppo = found->data;
  return found ? 0 : AEE_ENOSUCH;
}

EXPORT int HAP_pls_add(uintptr_t type, uintptr_t key, int size, int (*ctor)(void *ctx, void *data), void *ctx, void (*dtor)(void *), void **ppo) {
  if (!HAP_pls_lookup(type, key, ppo)) return AEE_EALREADY;
  struct value *made = size < 0 ? NULL : calloc(1, sizeof *made + (size_t)size);
  if (!made) return AEE_ENOMEMORY;
  const int code = ctor ? ctor(ctx, made->data) : 0; /* without the lock: it may add others */
  pthread_mutex_lock(&values_lock);
  const struct value *other = value_of(type, key);
  made->next = values, made->type = type, made->key = key;
  if (!code && !other) values = made;
  pthread_mutex_unlock(&values_lock);
  if (!code && !other) return *ppo = made->data, 0;
  if (!code && dtor) dtor(made->data);
  free(made);
  return code ? code : AEE_EALREADY; /* another thread was first */
}

EXPORT int HAP_pls_add_lookup(uintptr_t type, uintptr_t key, int size, int (*ctor)(void *ctx, void *data), void *ctx, void (*dtor)(void *), void **ppo) {
  const int code = HAP_pls_add(type, key, size, ctor, ctx, dtor, ppo);
  return code == AEE_EALREADY ? HAP_pls_lookup(type, key, ppo) : code;
}
