/* Atomic operations on shared words; for images, and for a program's own memory.
 *
 * Source: programs that call it, https://github.com/LineageOS/android_system_chre, https://github.com/zhouwg/ggml-hexagon,
 * for names and parameters
 */
#ifndef HBRT_FASTRPC_QURT_ATOMIC_OPS_H
#define HBRT_FASTRPC_QURT_ATOMIC_OPS_H

/* For one width: NAME##_return() and NAME##_set() return the new value, NAME##_compare_and_set() whether the old value
 * matched. */
#define HBRT_ATOMIC_CHANGE(name, type, change) \
  static inline type name##_return(type *target, type v) { return __atomic_##change##_fetch(target, v, __ATOMIC_SEQ_CST); } \
  static inline void name(type *target, type v) { name##_return(target, v); }
#define HBRT_ATOMIC_STEP(name, type, change) \
  static inline type name##_return(type *target) { return __atomic_##change##_fetch(target, 1, __ATOMIC_SEQ_CST); } \
  static inline void name(type *target) { name##_return(target); }
#define HBRT_ATOMIC_BIT(name, type, change, mask) \
  static inline void name(type *target, unsigned int bit) { \
    const type one = (type)1 << bit % (8 * sizeof(type)); \
    __atomic_##change##_fetch(target + bit / (8 * sizeof(type)), mask one, __ATOMIC_SEQ_CST); \
  }
#define HBRT_ATOMICS(prefix, type) \
  HBRT_ATOMIC_CHANGE(prefix##_add, type, add) \
  HBRT_ATOMIC_CHANGE(prefix##_sub, type, sub) \
  HBRT_ATOMIC_CHANGE(prefix##_and, type, and) \
  HBRT_ATOMIC_CHANGE(prefix##_or, type, or) \
  HBRT_ATOMIC_CHANGE(prefix##_xor, type, xor) \
  HBRT_ATOMIC_STEP(prefix##_inc, type, add) \
  HBRT_ATOMIC_STEP(prefix##_dec, type, sub) \
  HBRT_ATOMIC_BIT(prefix##_set_bit, type, or, ) \
  HBRT_ATOMIC_BIT(prefix##_clear_bit, type, and, ~) \
  HBRT_ATOMIC_BIT(prefix##_change_bit, type, xor, ) \
  static inline type prefix##_set(type *target, type value) { return __atomic_store_n(target, value, __ATOMIC_SEQ_CST), value; } \
  static inline unsigned int prefix##_compare_and_set(type *target, type old_val, type new_val) { \
    return __atomic_compare_exchange_n(target, &old_val, new_val, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  } \
  static inline void prefix##_barrier(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

HBRT_ATOMICS(qurt_atomic, unsigned int)
HBRT_ATOMICS(qurt_atomic64, unsigned long long)

/* Add unless the word equals ``unless``; returns whether it added. */
static inline unsigned int qurt_atomic_add_unless(unsigned int *target, unsigned int delta, unsigned int unless) {
  unsigned int old_val = __atomic_load_n(target, __ATOMIC_SEQ_CST);
  while (old_val != unless)
    if (__atomic_compare_exchange_n(target, &old_val, old_val + delta, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 1;
  return 0;
}

#endif
