/* Calls every method of parts.idl, and prints the results. */
#include <stdio.h>
#include <string.h>

#include "parts.h"
#include "rpcmem.h"

#define MUST(is_so)                                          \
  do {                                                       \
    if (!(is_so)) {                                          \
      printf("%s:%d: not %s\n", __FILE__, __LINE__, #is_so); \
      return 1;                                              \
    }                                                        \
  } while (0)

int main(int count_of_arguments, char **arguments) {
  (void)arguments;
  remote_handle64 h = 0;
  MUST(parts_open(parts_URI CDSP_DOMAIN, &h) == 0);

  uint8_t one[] = {1, 2, 3}, other[] = {9}, first[8] = {0}, second[8] = {0};
  const parts_buffer many[] = {{one, 3}, {NULL, 0}, {other, 1}};
  parts_buffer copies[] = {{first, 8}, {second, 8}};
  int32_t sizes[3] = {0};
  MUST(parts_join(h, many, 3, sizes, 3, copies, 2) == 0);
  MUST(sizes[0] == 3 && sizes[1] == 0 && sizes[2] == 1 && !memcmp(first, "\1\2\3\0", 4) && !second[0]);
  parts_buffer too_many[255] = {{NULL, 0}};
  MUST(parts_join(h, too_many, 255, NULL, 0, NULL, 0) == AEE_EUNSUPPORTED);
  MUST(parts_join(h, many, -1, NULL, 0, NULL, 0) == AEE_EBADPARM);
  MUST(parts_join(h, NULL, 1, NULL, 0, NULL, 0) == AEE_EBADPARM);

  char a[16], b[16];
  const _cstring1_t given[] = {{"left", 5}, {"right", 6}};
  _cstring1_t found[] = {{a, 16}, {b, 16}};
  uint32_t count = 0;
  MUST(parts_names(h, "to the ", given, 2, found, 2, &count) == 0);
  MUST(count == 2 && !strcmp(a, "to the left") && !strcmp(b, "to the right"));
  const _cstring1_t open_ended[] = {{"left", 4}};
  MUST(parts_names(h, "", open_ended, 1, NULL, 0, &count) == HBRT_FASTRPC_ON_DSP(AEE_EBADPARM));

  char name[] = "ab", back_name[8];
  uint8_t data[2];
  parts_item items[] = {{7, one, 3, 1.5, name, 3}}, back_items[] = {{0, data, 2, 0, back_name, 8}};
  const parts_box box = {4, items, 1, 1LL << 40};
  parts_box back = {0, back_items, 1, 0};
  int64_t total = 0;
  MUST(parts_store(h, &box, &total, &back) == 0);
  MUST(total == (1LL << 40) + 4 + 6 + 1 + 7 + 2 && back.id == 5 && back.sum == -(1LL << 40) && back.itemsLen == 1);
  MUST(back_items[0].kind == 7 && back_items[0].weight == 3.0 && data[1] == 7 && !strcmp(back_name, "<ab>"));

  parts_item heavy[] = {{0, NULL, 0, 5, name, 3}, {0, one, 1, 6, name, 3}};
  const parts_box boxes[] = {box, {10, heavy, 2, 0}, {0, NULL, 0, 0}};
  MUST(parts_weigh(h, boxes, 3, &total) == 0 && total == 4 * 1 + 10 * 11);

  const parts_vector v = {1, 2, 3};
  parts_vector doubled;
  const uint16_t text[] = {'h', 0x4e2d, 0};
  int32_t row[2] = {10, 20}, length = 0;
  MUST(parts_vectors(h, v, doubled, row, 2, text, &length) == 0);
  MUST(doubled[2] == 6 && row[0] == 11 && row[1] == 21 && length == 3);

  uint16_t hat[] = {'h', 0x4e2d, 0}, tah[3];
  const _wstring1_t wide[] = {{hat, 3}};
  _wstring1_t back_wide[] = {{tah, 3}};
  MUST(parts_words(h, wide, 1, back_wide, 1, h) == 0 && tah[0] == 0x4e2d && tah[1] == 'h' && !tah[2]);

  parts_note(h, 77);
  MUST(parts_noted(h) == 77);
  if (count_of_arguments > 1) return parts_close(h); /* an image in Python, which maps no memory */

  uint8_t *shared = rpcmem_alloc_def(8192);
  const int fd = rpcmem_to_fd(shared);
  uint32_t bytes = 0;
  for (int round = 0; round < 3; round++) {
    MUST(parts_attach(h, fd, 4096, 8192, round + 1, &bytes) == 0);
    MUST(bytes == 8192 && shared[4096] == round + 1 && shared[4111] == round + 1 && !shared[4112]);
  }
  MUST(remote_register_dma_handle(fd, 0) == 0 && parts_attach(h, 12345, 0, 10, 1, &bytes) == AEE_EINVALIDFD);
  rpcmem_free(shared);
  MUST(parts_close(h) == 0);
  puts("all is well");
  return 0;
}
