/* Fifty threads at once, the first call of the process among them; then callbacks, whose function calls the library. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "row.h"
#include "hbrt.h"

enum { THREADS = 50, CALLS = 3, TASKS = 8 };

static pthread_barrier_t together;
static atomic_int failures, called, errors_kept;
static sem_t done;

static void *work(void *number) {
  const float seed = (float)(long)number / 10;
  pthread_barrier_wait(&together);
  for (int at = 0; at < CALLS; at++)
    if (row_once(seed)) failures++;
  hbSysMem nothing = {0x10 + (uint64_t)(long)number, NULL, 0};
  char wanted[32];
  snprintf(wanted, sizeof wanted, "%#llx", (unsigned long long)nothing.phyAddr);
  if (hbSysFlushMem(&nothing, 1) && strstr(hbrt_last_error(), wanted)) errors_kept++;
  return NULL;
}

static void ended(hbDSPTask_t task, int32_t status, void *userdata) {
  if (task && status == 0 && *(int *)userdata == 7 && row_once(1) == 0) called++;
  sem_post(&done);
}

int main(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&together, NULL, THREADS);
  for (long at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, work, (void *)at);
  for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);

  int seven = 7;
  Row row;
  hbDSPTask_t tasks[TASKS];
  sem_init(&done, 0, 0);
  if (row_make(&row, 1)) return 1;
  for (int at = 0; at < TASKS; at++) {
    if (hbDSPRpc(&tasks[at], &row.block, &row.output, &row.ctrl)) return 2;
    if (hbDSPSetTaskDoneCb(tasks[at], ended, &seven)) return 3;
  }
  for (int at = 0; at < TASKS; at++) sem_wait(&done);
  for (int at = 0; at < TASKS; at++)
    if (hbDSPReleaseTask(tasks[at])) return 4;
  if (row_free(&row)) return 5;
  printf("%d failures, %d callbacks, %d sentences\n", failures, called, errors_kept);
  return 0;
}
