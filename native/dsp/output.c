/* The output of an image: lines of the board's log, like those of Python ops. */
#define _GNU_SOURCE
#include <stdio.h>

#include "hbrt/cycles.h"
#include "runtime.h"

#ifdef __GLIBC__ /* elsewhere stdout is not a variable: output goes to the log without core and command */
#include <unistd.h>

static ssize_t say(void *descriptor, const char *text, size_t size) {
  if (hbrt_dsp_now == NULL) return write((int)(intptr_t)descriptor, text, size);
  HBRT_CYCLES_COUNT(PRINT);
  HBRT_CYCLES_ADD(PRINTED, size);
  hbrt_dsp_runtime()->say(text, size);
  return (ssize_t)size;
}

static FILE *opened(int descriptor, int buffering) {
  const cookie_io_functions_t functions = {.write = say};
  FILE *stream = fopencookie((void *)(intptr_t)descriptor, "w", functions);
  if (stream != NULL) setvbuf(stream, NULL, buffering, 0);
  return stream;
}

void hbrt_dsp_take_output(void) {
  static int is_taken;
  if (is_taken++) return;
  FILE *out = opened(STDOUT_FILENO, _IOLBF), *error = opened(STDERR_FILENO, _IONBF);
  if (out != NULL && error != NULL) {
    fflush(stdout);
    setvbuf(stdout, NULL, _IOLBF, 0); /* for libraries that have already looked the stream up */
    stdout = out;
    stderr = error;
  }
}
#else
void hbrt_dsp_take_output(void) { setvbuf(stdout, NULL, _IOLBF, 0); }
#endif
