/* The implementation of parts.idl. */
#include "parts.h"

#include <stdio.h>
#include <string.h>

#include "HAP_mem.h"
#include "hb_dsp.h"

static int32_t last;

int parts_open(const char *uri, remote_handle64 *h) { return *h = 1, uri ? 0 : AEE_EBADPARM; }
int parts_close(remote_handle64 h) { return h == 1 ? 0 : AEE_EINVHANDLE; }

int parts_join(remote_handle64 h, const parts_buffer *many, int manyLen, int32_t *sizes, int sizesLen, parts_buffer *copies, int copiesLen) {
  (void)h;
  for (int at = 0; at < manyLen; at++) {
    if (at < sizesLen) sizes[at] = many[at].dataLen;
    if (at < copiesLen && copies[at].dataLen >= many[at].dataLen) memcpy(copies[at].data, many[at].data, (size_t)many[at].dataLen);
  }
  return 0;
}

int parts_names(remote_handle64 h, const char *prefix, const _cstring1_t *given, int givenLen, _cstring1_t *found, int foundLen, uint32_t *count) {
  (void)h;
  for (int at = 0; at < givenLen && at < foundLen; at++) snprintf(found[at].data, (size_t)found[at].dataLen, "%s%s", prefix, given[at].data);
  *count = (uint32_t)givenLen;
  return 0;
}

int parts_store(remote_handle64 h, const parts_box *given, int64_t *total, parts_box *back) {
  (void)h;
  *total = given->sum + given->id;
  back->id = (int16_t)(given->id + 1);
  back->sum = -given->sum;
  for (int at = 0; at < given->itemsLen; at++) {
    const parts_item *one = &given->items[at];
    for (int each = 0; each < one->dataLen; each++) *total += one->data[each];
    *total += (int64_t)one->weight + one->kind + (int64_t)strlen(one->name);
    if (at >= back->itemsLen) continue;
    back->items[at].kind = one->kind;
    back->items[at].weight = one->weight * 2;
    memset(back->items[at].data, one->kind, (size_t)back->items[at].dataLen);
    snprintf(back->items[at].name, (size_t)back->items[at].nameLen, "<%s>", one->name);
  }
  return 0;
}

int parts_weigh(remote_handle64 h, const parts_box *boxes, int boxesLen, int64_t *sum) {
  *sum = h ? 0 : -1;
  for (int at = 0; at < boxesLen; at++)
    for (int each = 0; each < boxes[at].itemsLen; each++) *sum += boxes[at].id * (int64_t)boxes[at].items[each].weight;
  return 0;
}

int parts_vectors(remote_handle64 h, const parts_vector v, parts_vector doubled, int32_t *row, int rowLen, const uint16_t *text, int32_t *length) {
  (void)h;
  for (int at = 0; at < 3; at++) doubled[at] = 2 * v[at];
  for (int at = 0; at < rowLen; at++) row[at]++;
  *length = (int32_t)hbrt_wide_length(text);
  return 0;
}

int parts_attach(remote_handle64 h, int memory, uint32_t memoryOffset, uint32_t memoryLen, int32_t value, uint32_t *length) {
  (void)h;
  void *address;
  uint64_t physical;
  const int code = HAP_mmap_get(memory, &address, &physical);
  if (code) return code;
  memset((char *)address + memoryOffset, value, 16);
  *length = memoryLen;
  return HAP_mmap_put(memory);
}

void parts_note(remote_handle64 h, int32_t n) { (void)h, last = n; }
uint32_t parts_noted(remote_handle64 h) { return h ? (uint32_t)last : 0; }

int parts_words(remote_handle64 h, const _wstring1_t *given, int givenLen, _wstring1_t *found, int foundLen, remote_handle64 peer) {
  if (!h || !peer) return AEE_EINVHANDLE;
  for (int at = 0; at < givenLen && at < foundLen; at++) {
    const int last = given[at].dataLen - 1;
    for (int each = 0; each < last; each++) found[at].data[each] = given[at].data[last - 1 - each];
    found[at].data[last] = 0;
  }
  return 0;
}

int main(void) { return hb_dsp_env_init() || parts_skel_register() || hb_dsp_start(); }
