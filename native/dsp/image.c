/* The headers' functions, as calls into the core's runtime; and calls into an image's functions. */
#define _GNU_SOURCE
#define HBRT_CYCLES_DEFINE
#include "runtime.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "cv/core.h"
#include "engine.h"
#include "hb_dsp.h"
#include "mailbox.h"
#pragma GCC visibility push(default)
#include "hbrt/cycles.h"
#pragma GCC visibility pop
#include "nn/core.h"
#include "xtensa/xos.h"

#undef hb_dsp_register_fn
#undef hb_dsp_start
#undef hb_dsp_mem_map
#undef hb_dsp_mem_unmap
#undef hb_dsp_init_global_tm
#undef xvAllocateBuffer
#undef xvFreeBuffer

const struct hbrt_dsp_calls *hbrt_dsp_now;
HBRT_THREAD struct frame *hbrt_dsp_frame;
EXPORT int32_t hbrt_dsp_raised;       /* a call of the runtime has raised: Python keeps the exception */
EXPORT char hbrt_dsp_failure[512];    /* error message of this task's last failed call */
struct xvTileManager {
  char none;
};
EXPORT struct xvTileManager hbrt_dsp_tile_manager;

static int32_t is_unknown; /* the core in Python does not know which task runs */
static int is_forked; /* this process was forked by an image: Python must not be called in it */

static void become_child(void) {
  is_forked = 1;
  hbrt_dsp_now = NULL;
  hbrt_dsp_engine.is_on = 0;
}

static int is_new(void) { return __atomic_load_n(&is_unknown, __ATOMIC_ACQUIRE); }

/* The runtime, once it knows which task calls. */
const struct hbrt_dsp_calls *hbrt_dsp_runtime(void) {
  const struct hbrt_dsp_calls *now = hbrt_dsp_now;
  if (is_new() && __atomic_exchange_n(&is_unknown, 0, __ATOMIC_ACQ_REL)) now->begin();
  return now;
}

/* Returns 0, or -1 for a table of another version. */
EXPORT int32_t hbrt_dsp_install(const struct hbrt_dsp_calls *calls, int32_t takes_output) {
  static int is_prepared;
  if (calls != NULL && calls->version != HBRT_DSP_CALLS_VERSION) return -1;
  hbrt_dsp_now = calls;
  if (!is_prepared++) pthread_atfork(NULL, NULL, become_child);
  if (takes_output) hbrt_dsp_take_output();
  return 0;
}

/* -- calls into an image's functions */

static _Unwind_Reason_Code stop_at_frame(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                         struct _Unwind_Exception *exception, struct _Unwind_Context *context,
                                         void *frame) {
  (void)version, (void)kind, (void)exception;
  if ((actions & _UA_END_OF_STACK) || (uintptr_t)_Unwind_GetCFA(context) > (uintptr_t)frame)
    longjmp(((struct frame *)frame)->env, 1);
  return _URC_NO_REASON;
}

static void forget(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception) { (void)reason, (void)exception; }

/* End the image's calling function; its C++ objects are destroyed. */
static void leave_image(void) {
  static __thread struct _Unwind_Exception exception;
  struct frame *frame = hbrt_dsp_frame;
  if (frame == NULL) return; /* a thread of the image: the function ends at its next call, or when it returns */
  memset(&exception, 0, sizeof exception);
  exception.exception_cleanup = forget;
  _Unwind_ForcedUnwind(&exception, stop_at_frame, frame);
  longjmp(frame->env, 1); /* code without unwind tables */
}

EXPORT uint64_t hbrt_dsp_work[HBRT_WORK_COUNTS];
/* The engine's latest values: the core's cycle, and the cycle at which the newest copy is done. */
EXPORT uint64_t hbrt_dsp_clock[2];
/* End cycles of copies, by handle, as they were queued: until then, only this thread's cycles pass, so polling an
 * unfinished copy needs no call. */
static __thread struct {
  int32_t handle;
  uint64_t end;
} copies[64];
static HBRT_THREAD uint64_t polled_cycles; /* cycles of such polls that are not charged yet */
#define COPY_OF(handle) (&copies[(uint32_t)(handle) % (sizeof copies / sizeof *copies)])

#define NO_OP ((void *)1) /* passed as input to run main; the output then has its arguments */

/* Call a function of the image: an op, or main. */
EXPORT __attribute__((noinline)) int32_t hbrt_dsp_run(void *fn, void *input, void *output, uint64_t input_bytes, uint64_t output_bytes) {
  struct frame frame;
  volatile int32_t result = 0;
  /* State of the op that this one interrupts. */
  const uint64_t clock[2] = {hbrt_dsp_clock[0], hbrt_dsp_clock[1]}, is_on = hbrt_dsp_engine.is_on;
  const struct hbrt_cycles counted = hbrt_cycles_now;
  const uint64_t polled = polled_cycles;
  const int is_inner = hbrt_dsp_frame != NULL && hbrt_dsp_frame->is_op;
  if (is_inner) {
    hbrt_dsp_engine.is_on = polled_cycles = 0;
    memset(&hbrt_cycles_now, 0, sizeof hbrt_cycles_now);
  }
  uint64_t work[HBRT_WORK_COUNTS];
  memcpy(work, hbrt_dsp_work, sizeof work);
  memset(hbrt_dsp_work, 0, sizeof work);
  memset(copies, 0, sizeof copies); /* those of another engine */
  frame.outer = hbrt_dsp_frame;
  frame.is_op = input != NO_OP;
  frame.input_bytes = input_bytes;
  frame.output_bytes = output_bytes;
  if (setjmp(frame.env) == 0) {
    hbrt_dsp_failure[0] = 0;
    hbrt_dsp_frame = &frame;
    result = ((int (*)(void *, void *, void *))fn)(input, output, &hbrt_dsp_tile_manager);
  }
  hbrt_dsp_frame = frame.outer;
  if (!is_inner && hbrt_dsp_at_end) hbrt_dsp_at_end();
  if (is_forked) {
    static const char text[] = "A process forked by the image returned from the image's function. It is ended: a "
                               "forked process must not continue as the core. End it with _exit().\n";
    if (write(STDERR_FILENO, text, sizeof text - 1)) _exit(1);
    _exit(1);
  }
  fflush(stdout);
  if (!is_new()) hbrt_dsp_settle(); /* otherwise they belong to the caller */
  memset(copies, 0, sizeof copies);
  memcpy(hbrt_dsp_clock, clock, sizeof clock);
  if (is_inner) {
    hbrt_dsp_engine.is_on = is_on;
    hbrt_cycles_now = counted;
    polled_cycles = polled;
  }
  for (int i = 0; i < HBRT_WORK_COUNTS; ++i) hbrt_dsp_work[i] += work[i];
  return result;
}

EXPORT int32_t hbrt_dsp_main(void *main_function, char *name) {
  char *arguments[] = {name, NULL};
  return hbrt_dsp_run(main_function, NO_OP, arguments, 0, 0);
}

/* -- the headers' functions */

uint64_t hbrt_dsp_take_cycles(void) {
  const struct hbrt_cycles *now = &hbrt_cycles_now;
  hbrt_dsp_work[HBRT_WORK_BUNDLES] += hbrt_cycles_bundles(now);
  hbrt_dsp_work[HBRT_WORK_GATHERS] += now->count[HBRT_CYCLES_GATHER];
  hbrt_dsp_work[HBRT_WORK_DIVIDES] += now->count[HBRT_CYCLES_DIVIDE];
  hbrt_dsp_work[HBRT_WORK_SCALARS] += now->count[HBRT_CYCLES_SCALAR];
  hbrt_dsp_work[HBRT_WORK_PRINTS] += now->count[HBRT_CYCLES_PRINT];
  hbrt_dsp_work[HBRT_WORK_PRINTED_BYTES] += now->count[HBRT_CYCLES_PRINTED];
  hbrt_dsp_work[HBRT_WORK_WAIT_CYCLES] += polled_cycles;
  uint64_t spent = hbrt_cycles_take() + polled_cycles;
  polled_cycles = 0;
  return spent;
}

int hbrt_dsp_poll_in_vain(uint64_t now, uint64_t end_cycle, uint64_t poll_cycles) {
  static HBRT_THREAD struct hbrt_cycles counted; /* a polling loop is not counted: the divisions are done once */
  static HBRT_THREAD uint64_t pending;
  if (memcmp(&counted, &hbrt_cycles_now, sizeof counted) != 0) {
    counted = hbrt_cycles_now;
    pending = hbrt_cycles_pending();
  }
  if (now + polled_cycles + pending >= end_cycle) return 0;
  polled_cycles += poll_cycles;
  return 1;
}

void hbrt_dsp_settle(void) {
  uint64_t spent = hbrt_dsp_take_cycles();
  if (spent && hbrt_dsp_now != NULL && !hbrt_engine_charge(spent))
    hbrt_dsp_clock[0] = hbrt_dsp_runtime()->cycles(spent);
}

/* Like hbrt_dsp_run, for a task that the core in Python does not know of; see hbrt_call of the mailbox in C. */
EXPORT int32_t hbrt_dsp_call(void *fn, void *input, void *output, uint64_t input_bytes, uint64_t output_bytes, uint32_t client,
                             int32_t *result, uint64_t *spent) {
  __atomic_store_n(&is_unknown, 1, __ATOMIC_RELEASE);
  hbrt_engine_begin(client);
  *result = hbrt_dsp_run(fn, input, output, input_bytes, output_bytes);
  uint64_t cycles = hbrt_dsp_take_cycles();
  if (hbrt_engine_charge(cycles)) cycles = 0;
  spent[0] = cycles + hbrt_engine_end();
  memcpy(spent + 1, hbrt_dsp_work, sizeof hbrt_dsp_work);
  memset(hbrt_dsp_work, 0, sizeof hbrt_dsp_work);
  return !__atomic_exchange_n(&is_unknown, 0, __ATOMIC_ACQ_REL) || hbrt_dsp_raised;
}

static int is_there(const char *function) {
  if (hbrt_dsp_now != NULL) return 1;
  fprintf(stderr, "%s: this program does not run on a core. %s\n", function,
          is_forked ? "A process forked by an image cannot use it." : "Run it as an image: hbrt start --image FILE.");
  return 0;
}

void hbrt_dsp_leave_if_raised(void) {
  if (hbrt_dsp_raised) leave_image();
}

static const struct hbrt_dsp_calls *enter(void) {
  hbrt_dsp_leave_if_raised();
  hbrt_dsp_settle();
  return hbrt_dsp_runtime();
}

/* A call through the runtime's table; the last argument is the result without a core. */
#define CALL(type, name, none, ...)                \
  do {                                             \
    if (!is_there(__func__)) return none;          \
    type result = enter()->name(__VA_ARGS__);      \
    hbrt_dsp_leave_if_raised();                    \
    return result;                                 \
  } while (0)
/* The same, unless hbrt_dsp_engine has done it. */
#define CALL_PYTHON(...)                           \
  do {                                             \
    if (hbrt_dsp_now != NULL) hbrt_engine_hand_over(); \
    CALL(__VA_ARGS__);                             \
  } while (0)

EXPORT int hb_dsp_env_init(void) { CALL(int32_t, env_init, HB_DSP_INVALID_ARGUMENT, ); }

EXPORT int hbrt_dsp_init_global_tm(const char *site, void *pool0, int32_t size0, void *pool1, int32_t size1) {
  CALL(int32_t, init_global_tm, HB_DSP_INVALID_ARGUMENT, site, pool0, size0, pool1, size1);
}
EXPORT int hb_dsp_init_global_tm(void *pool0, int32_t size0, void *pool1, int32_t size1) {
  return hbrt_dsp_init_global_tm(NULL, pool0, size0, pool1, size1);
}

EXPORT int hbrt_dsp_register_fn(const char *site, const char *name, int cmd, hb_dsp_fn fn, int latency) {
  CALL(int32_t, register_fn, HB_DSP_INVALID_ARGUMENT, site, name, cmd, (void *)fn, latency);
}
EXPORT int hb_dsp_register_fn(int cmd, hb_dsp_fn fn, int latency) {
  return hbrt_dsp_register_fn(NULL, NULL, cmd, fn, latency);
}

EXPORT int hbrt_dsp_register_nn_all(const char *site) { CALL(int32_t, register_all, HB_DSP_INVALID_ARGUMENT, site, 0); }
EXPORT int hbrt_dsp_register_cv_all(const char *site) { CALL(int32_t, register_all, HB_DSP_INVALID_ARGUMENT, site, 1); }

EXPORT int hbrt_dsp_start(const char *site) {
  fflush(stdout);
  CALL(int32_t, start, HB_DSP_INVALID_ARGUMENT, site);
}
EXPORT int hb_dsp_start(void) { return hbrt_dsp_start(NULL); }

static void *map_by_python(const char *site, uint64_t phy_addr, int64_t size) {
  CALL_PYTHON(void *, mem_map, MAP_FAILED, site, phy_addr, size);
}
EXPORT void *hbrt_dsp_mem_map(const char *site, uint64_t phy_addr, int64_t size) {
  void *mapped;
  if (hbrt_engine_map(site, phy_addr, size, &mapped)) return mapped;
  mapped = map_by_python(site, phy_addr, size);
  if (mapped != MAP_FAILED) hbrt_engine_remember(phy_addr, (uint64_t)size);
  return mapped;
}
EXPORT void *hb_dsp_mem_map(uint64_t phy_addr, int64_t size) { return hbrt_dsp_mem_map(NULL, phy_addr, size); }

EXPORT int hbrt_dsp_mem_unmap(const char *site, uintptr_t mapped) {
  if (hbrt_engine_unmap(mapped)) return 0;
  CALL_PYTHON(int32_t, mem_unmap, HB_DSP_INVALID_ARGUMENT, site, mapped);
}
EXPORT int hb_dsp_mem_unmap(uintptr_t mapped) { return hbrt_dsp_mem_unmap(NULL, mapped); }

int (*hbrt_dsp_offered_main)(void);
void (*hbrt_dsp_at_end)(void);
uint64_t hbrt_dsp_client(int32_t id) { CALL(uint64_t, client, 0, id); }
EXPORT int hb_dsp_core_id(void) { CALL(int32_t, core_id, -1, ); }

EXPORT int hb_dsp_set_log_level(int level) { CALL(int32_t, set_log_level, HB_DSP_INVALID_ARGUMENT, level); }

EXPORT void hb_dsp_log(int level, const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int size = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (size >= 0 && hbrt_dsp_now == NULL)
    fprintf(stderr, "%s\n", text);
  else if (size >= 0) {
    enter()->log(level, text);
    free(text);
    hbrt_dsp_leave_if_raised();
    return;
  }
  free(text);
}

EXPORT void *hbrt_xvAllocateBuffer(const char *site, xvTileManager *tm, int32_t size, int32_t color, int32_t align) {
  void *tile;
  if (hbrt_engine_allocate(site, tm, size, color, align, &tile)) return tile;
  CALL_PYTHON(void *, allocate, NULL, site, tm, size, color, align);
}
EXPORT void *xvAllocateBuffer(xvTileManager *tm, int32_t size, int32_t color, int32_t align) {
  return hbrt_xvAllocateBuffer(NULL, tm, size, color, align);
}

EXPORT int32_t hbrt_xvFreeBuffer(const char *site, xvTileManager *tm, const void *tile) {
  if (hbrt_engine_free(tm, tile)) return XVTM_SUCCESS;
  CALL_PYTHON(int32_t, free, XVTM_FREE_ERROR, site, tm, (void *)tile);
}
EXPORT int32_t xvFreeBuffer(xvTileManager *tm, const void *tile) { return hbrt_xvFreeBuffer(NULL, tm, tile); }

EXPORT const char *xvGetErrorInfo(xvTileManager *tm) {
  (void)tm;
  return hbrt_dsp_failure;
}

static int32_t queue(const char *site, void *dst, const void *src, uint64_t row_bytes, const uint32_t *shape) {
  CALL_PYTHON(int32_t, copy, IDMA_ERR_BAD_TRANSFER, site, dst, (void *)src, row_bytes, shape);
}
static int32_t copy(const char *site, void *dst, const void *src, uint64_t row_bytes, const uint32_t *shape) {
  int32_t handle;
  if (hbrt_engine_copy(site, dst, src, row_bytes, shape, &handle)) return handle;
  handle = queue(site, dst, src, row_bytes, shape);
  if (handle > 0) {
    COPY_OF(handle)->handle = handle;
    COPY_OF(handle)->end = hbrt_dsp_clock[1];
  }
  return handle;
}
EXPORT int32_t hbrt_idma_copy(const char *site, void *dst, const void *src, size_t size, int32_t flags) {
  (void)flags;
  return copy(site, dst, src, size, NULL);
}
EXPORT int32_t hbrt_idma_copy_2d(const char *site, void *dst, const void *src, size_t row_bytes, int32_t flags,
                                 uint32_t rows, uint32_t src_pitch, uint32_t dst_pitch) {
  (void)flags;
  const uint32_t shape[] = {rows, src_pitch, dst_pitch, 1, 0, 0};
  return copy(site, dst, src, row_bytes, shape);
}
EXPORT int32_t hbrt_idma_copy_3d(const char *site, void *dst, void *src, uint32_t flags, size_t row_bytes,
                                 uint32_t rows, uint32_t tiles, uint32_t src_row_pitch, uint32_t dst_row_pitch,
                                 uint32_t src_tile_pitch, uint32_t dst_tile_pitch) {
  (void)flags;
  const uint32_t shape[] = {rows, src_row_pitch, dst_row_pitch, tiles, src_tile_pitch, dst_tile_pitch};
  return copy(site, dst ? *(void **)dst : NULL, src ? *(void **)src : NULL, row_bytes, shape);
}
EXPORT int32_t hbrt_idma_desc_done(const char *site, int32_t handle) {
  int32_t is_done;
  if (hbrt_engine_desc_done(handle, &is_done)) return is_done;
  if (!is_there(__func__)) return IDMA_ERR_UNKNOWN_HANDLE;
  if (handle > 0 && COPY_OF(handle)->handle == handle &&
      hbrt_dsp_poll_in_vain(hbrt_dsp_clock[0], COPY_OF(handle)->end, hbrt_dsp_now->poll_cycles))
    return 0;
  hbrt_engine_hand_over();
  hbrt_dsp_leave_if_raised();
  const uint64_t spent = hbrt_dsp_take_cycles();
  is_done = hbrt_dsp_runtime()->desc_done(site, handle, spent);
  hbrt_dsp_leave_if_raised();
  return is_done;
}
static int32_t status(const char *site, int is_wait) {
  int32_t left;
  if (hbrt_engine_status(is_wait, &left)) return left;
  CALL_PYTHON(int32_t, buffer_status, IDMA_OK, site, is_wait);
}
EXPORT int32_t hbrt_idma_buffer_status(const char *site) { return status(site, 0); }
EXPORT idma_status_t hbrt_idma_hw_wait_all(const char *site) { return status(site, 1); }

/* Without a core, as in a program that only counts its own instructions, the counter has only these. */
static uint64_t measured, reads;
EXPORT uint32_t XT_RSR_CCOUNT(void) {
  uint64_t cycles;
  if (hbrt_engine_cycles(&cycles)) return (uint32_t)cycles;
  if (hbrt_dsp_now == NULL) {
    __atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
    return (uint32_t)__atomic_add_fetch(&measured, hbrt_cycles_take(), __ATOMIC_RELAXED);
  }
  hbrt_engine_hand_over();
  hbrt_dsp_leave_if_raised();
  const uint64_t spent = hbrt_dsp_take_cycles();
  hbrt_dsp_clock[0] = hbrt_dsp_runtime()->cycles(spent);
  return (uint32_t)hbrt_dsp_clock[0];
}

__attribute__((destructor)) static void tell_of_nothing(void) {
  if (reads < 2 || measured) return;
  fprintf(stderr, "XT_RSR_CCOUNT was read %llu times without any charge in between: plain C is not counted. Use IVP "
                  "intrinsics, or charge a loop with hb_dsp_charge().\n", (unsigned long long)reads);
}

static uint32_t clock_hz = 648000000;

EXPORT void xos_set_clock_freq(uint32_t frequency_hz) {
  if (hbrt_dsp_now != NULL) hbrt_dsp_runtime()->clock(frequency_hz);
  clock_hz = frequency_hz;
}
EXPORT uint32_t xos_get_clock_freq(void) { return clock_hz; }
EXPORT int32_t xos_start_system_timer(int32_t timer, uint32_t tick_cycles) {
  (void)tick_cycles;
  return timer >= 0 ? XOS_OK : HB_DSP_INVALID_ARGUMENT;
}
