/* What a core's vector instructions cost: counts by class, and the model that turns counts into cycles.
 *
 * Each IVP intrinsic adds one to a counter of its class, in its own thread. The image runtime calls
 * hbrt_cycles_take() when a task ends, hands what it returns to the core's cycle counter (`CycleCounter.charge`
 * of dsp_server/hardware/cycles.py), and adds hbrt_cycles_pending() to that counter where XT_RSR_CCOUNT reads it.
 * Exactly one C or C++ file of a process defines HBRT_CYCLES_DEFINE before it includes this header: the runtime.
 * -DHBRT_NO_CYCLES takes every count out of the code.
 *
 * The model is a perfect schedule: no stalls, and every slot of every instruction filled. It is a lower bound.
 * Source: DSP development guide (J5 OE), 10.2.1, for 5-way VLIW and two 64-byte loads or one load and one store
 * in an instruction. Every other constant is assumed.
 */
#ifndef HBRT_CYCLES_H
#define HBRT_CYCLES_H

#include <stdint.h>

enum hbrt_cycles_class {
  HBRT_CYCLES_LOAD,    /* a vector or a scalar from memory into a vector register */
  HBRT_CYCLES_STORE,   /* the same way back, flushes of an alignment register too */
  HBRT_CYCLES_ALU,     /* add, compare, shift, logic, minimum, conversion */
  HBRT_CYCLES_MUL,     /* multiply and multiply-add, integer and float */
  HBRT_CYCLES_PACK,    /* a wide register into a narrow one */
  HBRT_CYCLES_SELECT,  /* lanes into other lanes */
  HBRT_CYCLES_REDUCE,  /* all lanes into one number */
  HBRT_CYCLES_GATHER,  /* lanes from or to addresses of their own */
  HBRT_CYCLES_DIVIDE,  /* quotients, reciprocals and roots */
  HBRT_CYCLES_MOVE,    /* register to register, constants, vector booleans */
  HBRT_CYCLES_CLASSES  /* how many classes there are */
};

enum hbrt_cycles_model {
  HBRT_SLOTS = 5,             /* operations in an instruction: the guide's "5-way VLIW" */
  HBRT_MEMORY_SLOTS = 2,      /* loads and stores in an instruction: the guide */
  HBRT_STORE_SLOTS = 1,       /* stores among them: the guide */
  HBRT_ALU_SLOTS = 2,         /* assumed */
  HBRT_MUL_SLOTS = 1,         /* assumed */
  HBRT_PACK_SLOTS = 1,        /* assumed */
  HBRT_SELECT_SLOTS = 1,      /* assumed */
  HBRT_REDUCE_SLOTS = 1,      /* assumed */
  HBRT_GATHER_CYCLES = 16,    /* assumed: two elements of 16 bits a cycle */
  HBRT_DIVIDE_CYCLES = 8      /* assumed */
};

struct hbrt_cycles {
  uint64_t count[HBRT_CYCLES_CLASSES];
};

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HBRT_NO_CYCLES
/* initial-exec: one load finds it. A library that is loaded late still fits, as the counters take few bytes. */
#define HBRT_CYCLES_SHARED __attribute__((tls_model("initial-exec"), visibility("default")))
extern __thread struct hbrt_cycles hbrt_cycles_now HBRT_CYCLES_SHARED;
#ifdef HBRT_CYCLES_DEFINE
__thread struct hbrt_cycles hbrt_cycles_now HBRT_CYCLES_SHARED;
#endif
#define HBRT_CYCLES_COUNT(class_) ((void)++hbrt_cycles_now.count[HBRT_CYCLES_##class_])
#else
#define HBRT_CYCLES_COUNT(class_) ((void)0)
#endif

/* How many instructions hold `count` operations when each holds `slots` of them. */
static inline uint64_t hbrt_cycles_over(uint64_t count, uint64_t slots) { return (count + slots - 1) / slots; }

/* The cycles of those counts: the scarcest slot decides, and gathers and divisions come on top. */
static inline uint64_t hbrt_cycles_of(const struct hbrt_cycles *counted) {
  const uint64_t *n = counted->count;
  const uint64_t needs[] = {
      hbrt_cycles_over(n[HBRT_CYCLES_LOAD] + n[HBRT_CYCLES_STORE], HBRT_MEMORY_SLOTS),
      hbrt_cycles_over(n[HBRT_CYCLES_STORE], HBRT_STORE_SLOTS),
      hbrt_cycles_over(n[HBRT_CYCLES_ALU], HBRT_ALU_SLOTS),
      hbrt_cycles_over(n[HBRT_CYCLES_MUL], HBRT_MUL_SLOTS),
      hbrt_cycles_over(n[HBRT_CYCLES_PACK], HBRT_PACK_SLOTS),
      hbrt_cycles_over(n[HBRT_CYCLES_SELECT], HBRT_SELECT_SLOTS),
      hbrt_cycles_over(n[HBRT_CYCLES_REDUCE], HBRT_REDUCE_SLOTS),
  };
  uint64_t total = n[HBRT_CYCLES_MOVE], most = 0;
  for (int i = HBRT_CYCLES_LOAD; i <= HBRT_CYCLES_REDUCE; ++i) total += n[i];
  for (unsigned i = 0; i < sizeof needs / sizeof *needs; ++i) most = needs[i] > most ? needs[i] : most;
  const uint64_t issue = hbrt_cycles_over(total, HBRT_SLOTS);
  return (issue > most ? issue : most) + n[HBRT_CYCLES_GATHER] * HBRT_GATHER_CYCLES +
         n[HBRT_CYCLES_DIVIDE] * HBRT_DIVIDE_CYCLES;
}

/* The cycles of what this thread has counted since the last take. */
static inline uint64_t hbrt_cycles_pending(void) {
#ifndef HBRT_NO_CYCLES
  return hbrt_cycles_of(&hbrt_cycles_now);
#else
  return 0;
#endif
}

/* The same, and the counters of this thread begin again at nothing. */
static inline uint64_t hbrt_cycles_take(void) {
  const uint64_t cycles = hbrt_cycles_pending();
#ifndef HBRT_NO_CYCLES
  for (int i = 0; i < HBRT_CYCLES_CLASSES; ++i) hbrt_cycles_now.count[i] = 0;
#endif
  return cycles;
}

#ifdef __cplusplus
}
#endif
#endif /* HBRT_CYCLES_H */
