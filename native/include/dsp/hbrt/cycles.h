/* The cost of a core's vector instructions: counts by class, and the model that converts counts to cycles.
 *
 * Each IVP intrinsic increments a counter of its class, in its own thread; hb_dsp_charge() adds the counts given to it.
 * When a task ends, the image runtime calls hbrt_cycles_take() and passes the result to the core's cycle counter
 * (`CycleCounter` of dsp_server/hardware/cycles.py); where XT_RSR_CCOUNT reads that counter, it adds
 * hbrt_cycles_pending(). Exactly one C or C++ file of a process, the runtime, defines HBRT_CYCLES_DEFINE before
 * including this header. -DHBRT_NO_CYCLES compiles all counting out.
 *
 * The constants are those of the board's profile; a program without a core uses those of hbrt/profiles/j5.toml, which
 * gives their sources.
 */
#ifndef HBRT_CYCLES_H
#define HBRT_CYCLES_H

#include <stdint.h>

enum hbrt_cycles_class {
  HBRT_CYCLES_LOAD,    /* a vector or a scalar from memory to a vector register */
  HBRT_CYCLES_STORE,   /* the reverse, including flushes of an alignment register */
  HBRT_CYCLES_ALU,     /* add, compare, shift, logic, minimum, conversion */
  HBRT_CYCLES_MUL,     /* multiply and multiply-add, integer and float */
  HBRT_CYCLES_PACK,    /* a wide register to a narrow one */
  HBRT_CYCLES_SELECT,  /* lanes to other lanes */
  HBRT_CYCLES_REDUCE,  /* all lanes to one number */
  HBRT_CYCLES_GATHER,  /* lanes from or to individual addresses */
  HBRT_CYCLES_DIVIDE,  /* quotients, reciprocals and roots */
  HBRT_CYCLES_MOVE,    /* register to register, constants, vector booleans */
  HBRT_CYCLES_SCALAR,  /* scalar operations charged by an op */
  HBRT_CYCLES_PRINT,   /* calls of printf */
  HBRT_CYCLES_PRINTED, /* bytes that they print */
  HBRT_CYCLES_CLASSES  /* number of classes */
};

/* Slots of an instruction, and the cost of operations outside the slots; each loop takes `schedule_milli` thousandths
 * of the time of its scarcest slot. */
struct hbrt_cycles_model {
  uint64_t slots, memory_slots, store_slots, alu_slots, mul_slots, pack_slots, select_slots, reduce_slots, schedule_milli,
      gather, divide, scalar, print, printed, vector_bits;
};

struct hbrt_cycles {
  uint64_t count[HBRT_CYCLES_CLASSES];
};

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HBRT_NO_CYCLES
/* initial-exec: one load finds it. A library that is loaded late still fits, because the counters take few bytes. */
#define HBRT_CYCLES_SHARED __attribute__((tls_model("initial-exec"), visibility("default")))
extern __thread struct hbrt_cycles hbrt_cycles_now HBRT_CYCLES_SHARED;
extern struct hbrt_cycles_model hbrt_cycles_model __attribute__((visibility("default")));
#ifdef HBRT_CYCLES_DEFINE
__thread struct hbrt_cycles hbrt_cycles_now HBRT_CYCLES_SHARED;
struct hbrt_cycles_model hbrt_cycles_model = {5, 2, 1, 2, 1, 1, 1, 1, 1500, 16, 8, 1, 20000, 200, 512}; /* j5 */
#endif
#define HBRT_CYCLES_ADD(class_, count_) ((void)(hbrt_cycles_now.count[HBRT_CYCLES_##class_] += (count_)))
#define HBRT_CYCLES_COUNT(class_) ((void)++hbrt_cycles_now.count[HBRT_CYCLES_##class_])
#else
#define HBRT_CYCLES_ADD(class_, count_) ((void)(count_))
#define HBRT_CYCLES_COUNT(class_) ((void)0)
#endif

#ifndef HBRT_NO_CYCLES
/* Number of instructions for `count` operations, with `slots` of them per instruction. */
static inline uint64_t hbrt_cycles_over(uint64_t count, uint64_t slots) { return (count + slots - 1) / slots; }

/* The instructions for these counts: the scarcest slot decides. */
static inline uint64_t hbrt_cycles_bundles(const struct hbrt_cycles *counted) {
  const uint64_t *n = counted->count;
  const struct hbrt_cycles_model *is = &hbrt_cycles_model;
  const uint64_t needs[] = {
      hbrt_cycles_over(n[HBRT_CYCLES_LOAD] + n[HBRT_CYCLES_STORE], is->memory_slots),
      hbrt_cycles_over(n[HBRT_CYCLES_STORE], is->store_slots),
      hbrt_cycles_over(n[HBRT_CYCLES_ALU], is->alu_slots),
      hbrt_cycles_over(n[HBRT_CYCLES_MUL], is->mul_slots),
      hbrt_cycles_over(n[HBRT_CYCLES_PACK], is->pack_slots),
      hbrt_cycles_over(n[HBRT_CYCLES_SELECT], is->select_slots),
      hbrt_cycles_over(n[HBRT_CYCLES_REDUCE], is->reduce_slots),
  };
  uint64_t total = n[HBRT_CYCLES_MOVE], most = 0;
  for (int i = HBRT_CYCLES_LOAD; i <= HBRT_CYCLES_REDUCE; ++i) total += n[i];
  for (unsigned i = 0; i < sizeof needs / sizeof *needs; ++i) most = needs[i] > most ? needs[i] : most;
  const uint64_t issue = hbrt_cycles_over(total, is->slots);
  return issue > most ? issue : most;
}

/* The cycles for these counts. */
static inline uint64_t hbrt_cycles_of(const struct hbrt_cycles *counted) {
  const uint64_t *n = counted->count;
  const struct hbrt_cycles_model *is = &hbrt_cycles_model;
  return (hbrt_cycles_bundles(counted) * is->schedule_milli + 999) / 1000 + n[HBRT_CYCLES_GATHER] * is->gather +
         n[HBRT_CYCLES_DIVIDE] * is->divide + n[HBRT_CYCLES_SCALAR] * is->scalar + n[HBRT_CYCLES_PRINT] * is->print +
         n[HBRT_CYCLES_PRINTED] * is->printed;
}
#endif

/* The cycles for what this thread has counted since the last take. */
static inline uint64_t hbrt_cycles_pending(void) {
#ifndef HBRT_NO_CYCLES
  return hbrt_cycles_of(&hbrt_cycles_now);
#else
  return 0;
#endif
}

/* The same, and reset this thread's counters to 0. */
static inline uint64_t hbrt_cycles_take(void) {
  const uint64_t cycles = hbrt_cycles_pending();
#ifndef HBRT_NO_CYCLES
  for (int i = 0; i < HBRT_CYCLES_CLASSES; ++i) hbrt_cycles_now.count[i] = 0;
#endif
  return cycles;
}

/* Operations on each vector of a loop, by the slot they use. */
struct hb_dsp_operations {
  uint32_t load, store, alu, mul, pack, select, reduce, gather, divide, move, scalar;
};

/* Charge a loop in plain C, which is not counted otherwise: the operations on each vector, of
 * 512 bits or the profile's vector width.
 *
 *     hb_dsp_charge(count, 32, (struct hb_dsp_operations){.load = 1, .alu = 2, .store = 1});
 *
 * bits: element size, 8, 16, 32 or 64. Board compilers lack this call, and the board's counter does not need it: there,
 * #define hb_dsp_charge(...).
 */
static inline void hb_dsp_charge(uint64_t elements, uint32_t bits, struct hb_dsp_operations on_each) {
#ifdef HBRT_NO_CYCLES
  const uint64_t width = 512;
#else
  const uint64_t width = hbrt_cycles_model.vector_bits;
#endif
  const uint64_t vectors = (elements * bits + width - 1) / width;
  HBRT_CYCLES_ADD(LOAD, vectors * on_each.load);
  HBRT_CYCLES_ADD(STORE, vectors * on_each.store);
  HBRT_CYCLES_ADD(ALU, vectors * on_each.alu);
  HBRT_CYCLES_ADD(MUL, vectors * on_each.mul);
  HBRT_CYCLES_ADD(PACK, vectors * on_each.pack);
  HBRT_CYCLES_ADD(SELECT, vectors * on_each.select);
  HBRT_CYCLES_ADD(REDUCE, vectors * on_each.reduce);
  HBRT_CYCLES_ADD(GATHER, vectors * on_each.gather);
  HBRT_CYCLES_ADD(DIVIDE, vectors * on_each.divide);
  HBRT_CYCLES_ADD(MOVE, vectors * on_each.move);
  HBRT_CYCLES_ADD(SCALAR, vectors * on_each.scalar);
}

#ifdef __cplusplus
}
#endif
#endif /* HBRT_CYCLES_H */
