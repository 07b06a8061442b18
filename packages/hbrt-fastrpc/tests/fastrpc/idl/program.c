/* Calls every method of all.idl, and prints the results. */
#include <stdio.h>
#include <string.h>

#include "all.h"
#include "rpcmem.h"

#define MUST(is_so)                                        \
  do {                                                     \
    if (!(is_so)) {                                        \
      printf("%s:%d: not %s\n", __FILE__, __LINE__, #is_so); \
      return 1;                                            \
    }                                                      \
  } while (0)

int main(void) {
  remote_handle64 h = 0;
  MUST(all_open(all_URI, &h) == AEE_EBADPARM);
  MUST(all_open(all_URI CDSP_DOMAIN, &h) == 0);
  MUST(all_nothing(h) == 0);

  uint8_t *shared = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 1 << 16);
  MUST(shared && rpcmem_to_fd(shared) >= 0 && rpcmem_to_fd(shared + 1) == -1);
  memset(shared, 1, 300);
  uint8_t outside[7];
  MUST(all_forward(h, shared, 100, shared + 128, 160, shared + 4096, 8, 2, 3) == 0);
  MUST(shared[4096] == (uint8_t)266 && shared[4103] == (uint8_t)273);
  MUST(all_forward(h, shared, 100, shared + 128, 160, outside, 7, 2, 3) == 0 && outside[6] == (uint8_t)272);
  /* Repeat the same invocation, also with its block in shared memory; and one that fails on the fast path. */
  uint32_t *block = (uint32_t *)(shared + 8192);
  remote_arg again[4] = {{.buf = {block, 20}}, {.buf = {shared, 4}}, {.buf = {shared, 4}}, {.buf = {shared + 4096, 2}}};
  for (int round = 0; round < 20; round++) {
    block[0] = 4, block[1] = 4, block[2] = 2, block[3] = (uint32_t)round, block[4] = 1;
    MUST(remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(2, 3, 1), again) == 0 && shared[4097] == 9 + round);
    block[0] = round % 2 ? 5 : 4;
    MUST(remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(2, 3, 1), again) ==
         (round % 2 ? HBRT_FASTRPC_ON_DSP(AEE_EBADPARM) : 0));
  }
  MUST(all_forward(h, NULL, 0, NULL, 0, outside, 7, 0, 0) == 0 && outside[6] == 6);
  MUST(all_forward(h, shared, -1, shared, 1, outside, 7, 2, 3) == AEE_EBADPARM);
  MUST(all_forward(h, shared + 65000, 1000, shared, 1, outside, 7, 2, 3) == AEE_EBADPARM);

  double sum;
  MUST(all_values(h, 1, 2, true, -4, 5, 1LL << 40, 7, 0.5f, 0.25, LAST, &sum) == 0);
  MUST(sum == (double)(1LL << 40) + 18.75);

  char text[20];
  MUST(all_strings(h, "ping", text, sizeof text) == 0 && strcmp(text, "ping") == 0);
  MUST(all_strings(h, "ping", text, 3) != 0);

  all_Pair p = {.mode = SLOW, .id = 1LL << 50}, back[3], one;
  p.b.y = 2.5, p.b.tag[2] = 9;
  all_Point q = {.x = 1, .y = 2}, many[2] = {{.x = 5}, {.x = 6, .tag = {1, 2, 3}}};
  MUST(all_pairs(h, &p, &q, many, 2, back, 3, &one) == 0);
  MUST(q.x == 2 && q.y == 2 && one.id == 2 && one.b.y == 2.5 && one.b.tag[2] == 9 && one.mode == SLOW);
  MUST(back[1].a.x == 6 && back[1].a.tag[2] == 3 && back[2].a.x == 0 && back[2].id == 1LL << 50);

  float v[3] = {1, 2, 3}, k = 3;
  MUST(all_scale(h, v, 3, &k) == 0 && v[2] == 9 && k == 4);

  uint8_t own[3] = {1, 2, 3};
  int result = -1;
  fastrpc_async_descriptor_t job = {.type = FASTRPC_ASYNC_POLL};
  MUST(all_later(h, &job, own, 3, 5, shared + 4096, 3) == 0);
  memset(own, 0, sizeof own); /* the queued call has its own copy */
  MUST(fastrpc_async_get_status(job.jobid, -1, &result) == 0 && result == 0 && shared[4096] == 6 && shared[4098] == 8);
  MUST(fastrpc_release_async_job(job.jobid) == 0);
  MUST(all_later(h, &job, own, 3, 5, own, 3) == AEE_EBADPARM && all_later(h, NULL, own, 3, 5, shared, 3) == AEE_EBADPARM);

  int64_t total;
  MUST(plain_add(INT32_MAX, 1, &total) == 0 && total == 1LL << 31);
  MUST(plain_fail(17) == 17);
  MUST(remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(2, 1, 0), &(remote_arg){.buf = {shared, 16}}) == HBRT_FASTRPC_ON_DSP(AEE_EBADPARM));
  MUST(remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(30, 0, 0), NULL) == HBRT_FASTRPC_ON_DSP(AEE_EUNSUPPORTED));
  MUST(remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(2, 1, 0), NULL) == AEE_EBADPARM);
  rpcmem_free(shared);
  rpcmem_free(shared);
  MUST(all_close(h) == 0);
  MUST(all_close(h) == AEE_EINVHANDLE);
  printf("all is well\n");
  return 0;
}
