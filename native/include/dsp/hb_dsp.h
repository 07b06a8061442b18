/* The DSP side of the runtime, for images in C and C++: initialization, op registration, mappings.
 *
 * An image is a shared library with a main(), built by 'hbrt cc --dsp'. An op is int op(void *input, void *output, void
 * *tm): its arguments are the addresses of the RPC's two blocks (NULL if omitted) and the tile manager; it returns 0,
 * or the value with which its task fails.
 *
 * Source: DSP development guide (J5 OE), 10.2.3.3, for the names, the order of calls and an op's signature,
 * https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
 * Emulator: values of codes, and parameter types where the guide shows only calls.
 */
#ifndef HB_DSP_H
#define HB_DSP_H

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h> /* MAP_FAILED */

#include "hb_dsp_log.h"
#include "hb_dsp_tm.h"
#include "hbrt/cycles.h"
#include "hbrt/site.h"
#include "xtensa/idma.h"
#include "xtensa/tie/xt_timer.h"

#define HB_ERR_MMAP_FAILED (-6000300)
#define HB_DSP_INVALID_ARGUMENT (-6000257)
#define HB_DSP_OUT_OF_TCM (-6000275)

/* Alignment and placement of data. On the board the linker puts the sections into TCM; here they are ordinary memory,
 * which becomes TCM when passed to hb_dsp_init_global_tm as a pool. */
#define HB_ALIGN(x) __attribute__((aligned(x)))
#define HB_ALIGN64 HB_ALIGN(64)
#define _HB_LOCAL_DRAM0_ __attribute__((section(".dram0.data")))
#define _HB_LOCAL_DRAM1_ __attribute__((section(".dram1.data")))
#define _HB_LOCAL_IRAM_ __attribute__((section(".iram0.text")))
#define KB(n) (n << 10)

#ifndef XT_MIN
#define XT_MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef XT_MAX
#define XT_MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

/* Used without a semicolon, as in the guide. */
#ifndef PRT_IF_COND_RETURN
#define PRT_IF_COND_RETURN(condition, result)                                              \
  {                                                                                        \
    if (condition) {                                                                       \
      printf("%s:%d: %s: return %d\n", __FILE__, __LINE__, #condition, (int)(result));     \
      return (result);                                                                     \
    }                                                                                      \
  }
#endif

HBRT_BEGIN

typedef int (*hb_dsp_fn)(void *input, void *output, void *tm);

/* Initialize the core's runtime; call this before registering ops. Returns 0. */
int hb_dsp_env_init(void);

/* Register an op under a command number: 0x1000..0xfffe for your own ops, an NN or CV number to replace a packaged op.
 * The latest registration wins. latency: the op's budget in microseconds, 0 for the board's default. Returns 0. */
int hb_dsp_register_fn(int cmd, hb_dsp_fn fn, int latency);
int hbrt_dsp_register_fn(const char *site, const char *name, int cmd, hb_dsp_fn fn, int latency);
#define hb_dsp_register_fn(cmd, fn, latency) hbrt_dsp_register_fn(HBRT_SITE, #fn, cmd, fn, latency)

/* Serve tasks until the core is stopped; never returns. */
int hb_dsp_start(void);
int hbrt_dsp_start(const char *site);
#define hb_dsp_start() hbrt_dsp_start(HBRT_SITE)

/* Map a physical range inside one live block of the caller. Returns its address, or MAP_FAILED; the task's message
 * gives the reason. */
void *hb_dsp_mem_map(uint64_t phy_addr, int64_t size);
void *hbrt_dsp_mem_map(const char *site, uint64_t phy_addr, int64_t size);
#define hb_dsp_mem_map(...) hbrt_dsp_mem_map(HBRT_SITE, __VA_ARGS__)

/* Undo a mapping of this task, given its address or the low 32 bits of it. Returns 0, or HB_DSP_INVALID_ARGUMENT. */
int hb_dsp_mem_unmap(uintptr_t mapped);
int hbrt_dsp_mem_unmap(const char *site, uintptr_t mapped);
/* Programs for the board cast the address to uint32_t, so inside the argument that name is an integer as wide as an
 * address. */
#define hb_dsp_mem_unmap(mapped)                                \
  __extension__({                                               \
    typedef uintptr_t uint32_t __attribute__((unused));         \
    hbrt_dsp_mem_unmap(HBRT_SITE, mapped);                      \
  })

/* Index of this core, from 0. Emulator only. */
int hb_dsp_core_id(void);

HBRT_END
#endif /* HB_DSP_H */
