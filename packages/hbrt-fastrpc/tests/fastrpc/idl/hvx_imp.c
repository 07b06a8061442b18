/* Saturating sums and a dot product by HVX; threads; and ways to end. No main(): the skeleton registers itself. */
#include "hvx.h"

#define FARF_HIGH 1
#include <HAP_farf.h>
#include <hb_dsp.h>
#include <hexagon_protos.h>
#include <hexagon_types.h>
#include <hmx_hexagon_protos.h>
#include <hvx_hexagon_protos.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((unused)) static void multiply(void) { Q6_mxclracc_hf(); } /* called nowhere, so not compiled */
static uint64_t none = 1;
int hvx_open(const char *uri, remote_handle64 *h) {
  none = NULL; /* a number for the vendor's compiler */
  return *h = 1, uri && !none ? 0 : AEE_EBADPARM;
}
int hvx_close(remote_handle64 h) { return h == 1 ? 0 : AEE_EINVHANDLE; }

int hvx_add(remote_handle64 h, const uint8_t *a, int aLen, const uint8_t *b, int bLen, uint8_t *sums, int sumsLen, uint32_t *dot) {
  (void)h;
  HVX_Vector x, y, sum, products = Q6_V_vzero();
  if (aLen != 128 || bLen != 128 || sumsLen != 128) return AEE_EBADPARM;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  sum = Q6_Vub_vadd_VubVub_sat(x, y);
  memcpy(sums, &sum, sizeof sum);
  products = Q6_Vuw_vrmpyacc_VuwVubVub(products, x, y);
  memcpy(dot, (uint8_t *)&products + 4, sizeof *dot);
  return 0;
}

static int32_t total;
static void *count(void *unused) {
  for (int at = 0; at < 1000; at++) __atomic_fetch_add(&total, 1, __ATOMIC_SEQ_CST);
  return unused;
}

int hvx_threads(remote_handle64 h, int32_t number, int32_t *sum) {
  (void)h;
  pthread_t made[16];
  if (number < 0 || number > 16) return AEE_EBADPARM;
  total = 0;
  for (int at = 0; at < number; at++)
    if (pthread_create(&made[at], NULL, count, NULL)) return AEE_EFAILED;
  for (int at = 0; at < number; at++) pthread_join(made[at], NULL);
  *sum = total;
  return 0;
}

static sem_t asked, heard;
static _Atomic int is_question;
static void *tell(void *unused) {
  for (;; sem_wait(&asked)) {
    sem_post(&heard);
    if (is_question) hb_dsp_mem_map(1, 128); /* which is no memory: the core is asked, and says so */
    else FARF(HIGH, "a thread tells");
  }
  return unused;
}

int hvx_tell(remote_handle64 h, boolean asks) {
  static pthread_t teller;
  (void)h;
  is_question = asks;
  if (teller) sem_post(&asked);
  else if (pthread_create(&teller, NULL, tell, NULL)) return AEE_EFAILED;
  return sem_wait(&heard);
}

int hvx_crash(remote_handle64 h, int32_t way) {
  volatile int *nowhere = (int *)8;
  if (way == 0) *nowhere = (int)h;
  FARF(HIGH, "the end comes, way %d", (int)way);
  for (int fd = 0; way == 3 && fd < 64; fd++) close(fd);
  if (way == 4) fork();
  if (way >= 3) return 0;
  while (way == 2) nanosleep(&(struct timespec){0, 1000000}, NULL);
  abort();
}
