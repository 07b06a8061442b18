/* A thread calls the command 0x1000 while it holds a mutex, for which the main thread waits. */
#include <pthread.h>

#include "row.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

static void *call(void *row) {
  pthread_mutex_lock(&mutex);
  pthread_barrier_wait(&held);
  row_call(row);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  Row row;
  pthread_t thread;
  if (row_make(&row, 1)) return 1;
  row.ctrl.rpcCmd = 0x1000;
  pthread_barrier_init(&held, NULL, 2);
  pthread_create(&thread, NULL, call, &row);
  pthread_barrier_wait(&held);
  pthread_mutex_lock(&mutex); /* waits here */
  pthread_mutex_unlock(&mutex);
  return pthread_join(thread, NULL) ? 1 : 7;
}
