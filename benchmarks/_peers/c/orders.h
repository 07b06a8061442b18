/* A client in C, which measures itself: it takes orders as lines on standard input, and answers in int64 on standard
 * output. `warm`, `sync BEGIN END` and `in_flight BEGIN END` do what those of benchmarks/_peers/__main__.py do; the times
 * are of CLOCK_MONOTONIC in ns. The answer is when it ended and a number: of calls, whose times follow, or of replies.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAYLOAD = 64, DEPTH = 32, WARM_CALLS = 20 };

/* Send the request `n`, below DEPTH; take its reply, which must be the same bytes. */
static void ask(int n, const uint8_t *request);
static void take(int n, uint8_t *reply);

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void fail(const char *what, int64_t status) {
  fprintf(stderr, "%s: %lld\n", what, (long long)status);
  exit(1);
}

static const uint8_t *request_of(int n) {
  static uint8_t request[PAYLOAD];
  for (int at = 0; at < PAYLOAD; at++) request[at] = (uint8_t)(at + n);
  return request;
}

static void take_checked(int n, const uint8_t *request) {
  uint8_t reply[PAYLOAD];
  take(n, reply);
  if (memcmp(reply, request, PAYLOAD) != 0) fail("The reply is not the request", n);
}

static void call(int n) {
  const uint8_t *request = request_of(n);
  ask(0, request);
  take_checked(0, request);
}

static void answer(int64_t ended_ns, int64_t number) {
  fwrite((int64_t[]){ended_ns, number}, sizeof(int64_t), 2, stdout);
}

static void sync_calls(int64_t end_ns) {
  static int64_t *times, room;
  uint8_t request[PAYLOAD], reply[PAYLOAD];
  memcpy(request, request_of(0), PAYLOAD);
  int64_t before = now_ns(), now, count = 0;
  do {
    ask(0, request);
    take(0, reply);
    now = now_ns();
    if (count == room && (times = realloc(times, (size_t)(room = 2 * room + 4096) * sizeof *times)) == NULL) exit(1);
    times[count++] = now - before;
    before = now;
  } while (now < end_ns);
  answer(now, count);
  fwrite(times, sizeof *times, (size_t)count, stdout);
}

static void calls_in_flight(int64_t end_ns) {
  uint8_t request[PAYLOAD], reply[PAYLOAD];
  memcpy(request, request_of(0), PAYLOAD);
  for (int n = 0; n < DEPTH; n++) ask(n, request);
  int64_t now, replies = 0;
  do {
    take((int)(replies % DEPTH), reply);
    ask((int)(replies++ % DEPTH), request);
    now = now_ns();
  } while (now < end_ns);
  for (int n = 0; n < DEPTH; n++) take((int)((replies + n) % DEPTH), reply);
  answer(now, replies);
}

static int obey(void) {
  char what[16];
  long long begin_ns, end_ns;
  while (scanf("%15s %lld %lld", what, &begin_ns, &end_ns) == 3) {
    struct timespec begin = {begin_ns / 1000000000, begin_ns % 1000000000};
    if (begin_ns > 0) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL);
    if (strcmp(what, "sync") == 0) {
      sync_calls(end_ns);
    } else if (strcmp(what, "in_flight") == 0) {
      calls_in_flight(end_ns);
    } else {
      for (int n = 0; n < WARM_CALLS; n++) call(n);
      answer(0, 0);
    }
    fflush(stdout);
  }
  return 0;
}
