/* Children of fork: in the middle of other threads' calls, with a block of the parent, with their own calls. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "row.h"

enum { CHILDREN = 6 };

static atomic_bool is_over;

static void *busy(void *unused) {
  (void)unused;
  while (!is_over)
    if (row_once(1)) abort();
  return NULL;
}

static int child(Row *parents) {
  if (row_call(parents) == 0) return 2; /* its blocks are the parent's */
  if (row_once(2)) return 3;            /* a board of the parent's is the child's too */
  return 0;
}

/* A thread that has never called forks: 0 when its children's first calls are right. */
static int fork_before_a_call(void) {
  int bad = 0;
  for (int at = 0; at < CHILDREN; at++) {
    pid_t pid = fork();
    if (pid == 0) _exit(row_once(1) ? 1 : 0);
    int status = 0;
    waitpid(pid, &status, 0);
    if (status) bad++, fprintf(stderr, "child: %#x\n", status);
  }
  return bad;
}

static void *once(void *unused) {
  if (row_once(1)) abort();
  return unused;
}

int main(int count, char **arguments) {
  pthread_t threads[4];
  Row row;
  if (count > 1 && !strcmp(arguments[1], "stranger")) {
    pthread_create(&threads[0], NULL, once, NULL);
    pthread_join(threads[0], NULL);
    return fork_before_a_call();
  }
  if (row_make(&row, 1) || row_call(&row)) return 1;
  for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, busy, NULL);
  int bad = 0;
  for (int at = 0; at < CHILDREN; at++) {
    pid_t pid = fork();
    if (pid == 0) exit(child(&row));
    int status = 0;
    waitpid(pid, &status, 0);
    if (status) bad++, fprintf(stderr, "child: %#x\n", status);
    if (row_call(&row)) bad++;
  }
  is_over = true;
  for (int at = 0; at < 4; at++) pthread_join(threads[at], NULL);
  if (row_free(&row)) bad++;
  printf("%d bad\n", bad);
  return bad;
}
