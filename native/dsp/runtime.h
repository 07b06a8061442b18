/* Between the library that images link and the core's runtime in Python: a table of functions that Python fills in.
 *
 * One implementation stands behind Python and C: the functions of the table are the runtime, the tile manager and the
 * iDMA engine of dsp_server. dsp_server/c_images/runtime_calls.py has the same table.
 */
#ifndef HBRT_DSP_RUNTIME_H
#define HBRT_DSP_RUNTIME_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#define HBRT_DSP_CALLS_VERSION 4
#define EXPORT __attribute__((visibility("default")))

/* A call may set hbrt_dsp_raised; then its value is void. */
struct hbrt_dsp_calls {
  uint32_t version, poll_cycles; /* of a poll for a copy that is under way */
  void (*begin)(void); /* before the first other call of a task that hbrt_dsp_call runs */
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
  /* rows and pitches as idma.h has them; 0 tiles for a flat copy, whose rows are 1. */
  int32_t (*copy)(const char *site, void *dst, void *src, uint64_t row_bytes, const uint32_t *shape);
  /* Charge, and poll: 1 when the copy is done. */
  int32_t (*desc_done)(const char *site, int32_t handle, uint64_t spent);
  int32_t (*buffer_status)(const char *site, int32_t is_wait);
  uint64_t (*cycles)(uint64_t spent); /* charge, and the counter then */
  uint32_t (*clock)(uint32_t frequency_hz); /* 0 asks */
  int32_t (*core_id)(void);
  void (*say)(const char *text, size_t size);
};

/* A function of the image under way: where the runtime goes on when one of its calls ends it. */
struct frame {
  struct frame *outer;
  jmp_buf env;
};

extern __thread struct frame *hbrt_dsp_frame;
extern const struct hbrt_dsp_calls *hbrt_dsp_now;

const struct hbrt_dsp_calls *hbrt_dsp_runtime(void);
void hbrt_dsp_take_output(void);
void hbrt_dsp_settle(void);
EXPORT int32_t hbrt_dsp_run(void *fn, void *input, void *output);

#endif /* HBRT_DSP_RUNTIME_H */
