/* Threads that are cancelled in the middle of calls: afterwards every call goes, and no call was left half done. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "row.h"

enum { THREADS = 40 };

static void *busy(void *unused) {
  (void)unused;
  for (;;) {
    if (row_once(1)) return NULL;
    pthread_testcancel();
  }
}

int main(void) {
  alarm(100);
  int bad = row_once(1) != 0;
  for (int at = 0; at < THREADS; at++) {
    pthread_t thread;
    void *ended = NULL;
    pthread_create(&thread, NULL, busy, NULL);
    usleep(1000 + 731 * (unsigned)at % 9000);
    pthread_cancel(thread);
    pthread_join(thread, &ended);
    if (ended != PTHREAD_CANCELED || row_once(2)) bad++;
  }
  printf("%d bad\n", bad);
  return bad;
}
