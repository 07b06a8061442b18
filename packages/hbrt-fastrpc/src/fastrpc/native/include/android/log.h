/* The log of Android, for programs of Android boards: records go to stderr, as "E/tag: text".
 *
 * Source: https://developer.android.com/ndk/reference/group/logging, for names and values
 */
#ifndef HBRT_ANDROID_LOG_H
#define HBRT_ANDROID_LOG_H

#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum android_LogPriority {
  ANDROID_LOG_UNKNOWN = 0,
  ANDROID_LOG_DEFAULT,
  ANDROID_LOG_VERBOSE,
  ANDROID_LOG_DEBUG,
  ANDROID_LOG_INFO,
  ANDROID_LOG_WARN,
  ANDROID_LOG_ERROR,
  ANDROID_LOG_FATAL,
  ANDROID_LOG_SILENT,
} android_LogPriority;

/* These return 1 for a record that was written, 0 for one that is silent. */
static inline int __android_log_vprint(int prio, const char *tag, const char *fmt, va_list ap) {
  if (prio < ANDROID_LOG_UNKNOWN || prio >= ANDROID_LOG_SILENT) return 0;
  char text[4068]; /* what a record holds */
  vsnprintf(text, sizeof text, fmt, ap);
  fprintf(stderr, "%c/%s: %s\n", "UDVDIWEF"[prio], tag ? tag : "", text);
  return 1;
}

__attribute__((format(printf, 3, 4))) static inline int __android_log_print(int prio, const char *tag, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const int written = __android_log_vprint(prio, tag, fmt, ap);
  va_end(ap);
  return written;
}

static inline int __android_log_write(int prio, const char *tag, const char *text) {
  return __android_log_print(prio, tag, "%s", text);
}

#ifdef __cplusplus
}
#endif

#endif
