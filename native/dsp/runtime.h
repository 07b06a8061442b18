/* Between the library that images link and the core's runtime in Python: a table of functions filled in by Python.
 *
 * Python and C share one implementation: the functions in the table are dsp_server's runtime, tile manager and iDMA
 * engine; engine.h covers the calls that bypass them. dsp_server/c_images/runtime_calls.py has the same table.
 */
#ifndef HBRT_DSP_RUNTIME_H
#define HBRT_DSP_RUNTIME_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#define HBRT_DSP_CALLS_VERSION 8
#define EXPORT __attribute__((visibility("default")))

/* A call may set hbrt_dsp_raised; its value is then invalid. */
struct hbrt_dsp_calls {
  uint32_t version, poll_cycles; /* of a poll for a copy in flight */
  void (*begin)(void); /* must come before any other call, except look, of a task that hbrt_dsp_call runs */
  void (*look)(int32_t is_called); /* Python handles signals; is_called: it has requested that */
  void (*take_over)(void); /* the state of hbrt_dsp_engine */
  int32_t (*env_init)(void);
  int32_t (*init_global_tm)(const char *site, void *pool0, int64_t size0, void *pool1, int64_t size1);
  int32_t (*register_fn)(const char *site, const char *name, int64_t cmd, void *fn, int64_t latency);
  int32_t (*register_all)(const char *site, int32_t is_cv);
  int32_t (*start)(const char *site);
  void *(*mem_map)(const char *site, uint64_t phy_addr, int64_t size);
  int32_t (*mem_unmap)(const char *site, uint64_t mapped);
  int32_t (*set_log_level)(int32_t level);
  void (*log)(int32_t level, const char *text);
  void *(*allocate)(const char *site, void *tm, int64_t size, int64_t color, int64_t align);
  int32_t (*free)(const char *site, void *tm, void *tile);
  /* rows and pitches as in idma.h; 0 tiles for a flat copy, whose rows are 1. */
  int32_t (*copy)(const char *site, void *dst, void *src, uint64_t row_bytes, const uint32_t *shape);
  /* Charge, and poll: 1 if the copy is done. */
  int32_t (*desc_done)(const char *site, int32_t handle, uint64_t spent);
  int32_t (*buffer_status)(const char *site, int32_t is_wait);
  uint64_t (*cycles)(uint64_t spent); /* charge, then return the counter */
  uint32_t (*clock)(uint32_t frequency_hz); /* 0 asks */
  int32_t (*core_id)(void);
  void (*say)(const char *text, size_t size);
  uint64_t (*client)(int32_t id); /* of an id, or if negative of the task that runs: returns the id, and in the lower half its process */
};

/* A running function of the image: where the runtime continues if one of its calls ends it. */
struct frame {
  struct frame *outer;
  int is_op; /* otherwise it is main */
  uint64_t input_bytes, output_bytes; /* of the task */
  jmp_buf env;
};

/* Found by one load, like the counters of hbrt/cycles.h. */
#define HBRT_THREAD __thread __attribute__((tls_model("initial-exec")))
EXPORT extern HBRT_THREAD struct frame *hbrt_dsp_frame;
extern const struct hbrt_dsp_calls *hbrt_dsp_now;

/* Like `client` of the table; 0 without a core. */
EXPORT uint64_t hbrt_dsp_client(int32_t id);
/* The program whose task runs. */
EXPORT uint32_t hbrt_dsp_task_client(void);

/* From a library that images link: the main of an image that has none; called when a task has ended, also early. */
EXPORT extern int (*hbrt_dsp_offered_main)(void);
EXPORT extern void (*hbrt_dsp_at_end)(void);

/* The image's work since the core in Python last took it, in the order of HBRT_WORK_BUNDLES and the rest. */
extern uint64_t hbrt_dsp_work[];

extern struct xvTileManager hbrt_dsp_tile_manager; /* an op's tm: its address proves that the op passes it on */

EXPORT const struct hbrt_dsp_calls *hbrt_dsp_runtime(void);
void hbrt_dsp_take_output(void);
void hbrt_dsp_settle(void);
void hbrt_dsp_leave_if_raised(void);
/* Cycles of this thread that are not counted yet: vector instructions, and unsuccessful polls. */
uint64_t hbrt_dsp_take_cycles(void);
/* Whether a poll comes before a copy's end, counting these cycles: then the poll is recorded, and nothing else is
 * needed. */
int hbrt_dsp_poll_in_vain(uint64_t now, uint64_t end_cycle, uint64_t poll_cycles);
EXPORT int32_t hbrt_dsp_run(void *fn, void *input, void *output, uint64_t input_bytes, uint64_t output_bytes);

#endif /* HBRT_DSP_RUNTIME_H */
