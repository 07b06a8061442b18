/* Printing of vectors. */
#include "qprintf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hexagon_protos.h"
#include "hvx_hexagon_protos.h"

enum { BYTES = 128, WORDS = BYTES / 4, MAX_CONVERSION = 16 };

static uint64_t masks[2] = {QPRINTF_MASK_ALL, QPRINTF_MASK_ALL};

void qprintf_set_mask(unsigned long long high, unsigned long long low) { masks[1] = high, masks[0] = low; }

/* A conversion in a message. */
struct form {
  int is_masked, columns; /* columns: 0 if not given */
  size_t parts;           /* of a word: 1, 2 or 4 */
  char conversion[MAX_CONVERSION]; /* for a word, including the %; for parts, only the letters */
};

/* Parse a conversion after its %; returns what follows it. */
static const char *read_form(const char *text, struct form *form) {
  *form = (struct form){.parts = 1};
  if (*text == 'm') form->is_masked = 1, text++;
  if (*text == '(') {
    form->columns = (int)strtol(text + 1, NULL, 10);
    text += strcspn(text, ")");
    text += *text == ')';
  }
  const size_t letters = strspn(text, "du"), length = letters > 1 ? letters : strcspn(text, " ,;|/\\\n\t:");
  if (letters == 2 || letters == 4) form->parts = letters;
  snprintf(form->conversion, sizeof form->conversion, "%s%.*s", form->parts == 1 ? "%" : "", (int)length, text);
  return text + length;
}

static int is_float(const char *conversion) {
  const char *letter = strpbrk(conversion, "diouxXcsaAeEfFgG");
  return letter && strchr("aAeEfFgG", *letter);
}

/* Part of a word: signed for d, unsigned for u. */
static void print_part(uint32_t word, size_t parts, size_t part, char letter) {
  const unsigned bits = 32u / (unsigned)parts;
  const uint32_t value = word >> part * bits << (32 - bits);
  printf(parts == 4 ? "%4d" : "%6d", letter == 'd' ? (int32_t)value >> (32 - bits) : (int32_t)(value >> (32 - bits)));
}

static void print_word(const struct form *form, uint32_t word) {
  float number;
  memcpy(&number, &word, sizeof number);
  if (form->parts == 1) {
    is_float(form->conversion) ? printf(form->conversion, (double)number) : printf(form->conversion, word);
    return;
  }
  for (size_t at = 0; at < form->parts; ++at) {
    if (at) printf("|");
    print_part(word, form->parts, form->parts - 1 - at, form->conversion[at]);
  }
}

static void print_vector(const struct form *form, const uint32_t *words) {
  const size_t elements = form->is_masked ? WORDS * form->parts : WORDS, bytes = BYTES / elements;
  const size_t columns = form->columns > 0 ? (size_t)form->columns : !form->is_masked && form->parts == 4 ? 4 : 8;
  size_t printed = 0;
  for (size_t at = elements; at-- > 0;) {
    const size_t first = at * bytes;
    if (form->is_masked && !(masks[first / 64] >> first % 64 & 1)) continue;
    if (printed % columns == 0) printf("\n  ");
    if (!form->is_masked) print_word(form, words[at]);
    else {
      printf("[%02x]=", (unsigned)first);
      if (form->parts == 1) print_word(form, words[at]);
      else print_part(words[first / 4], form->parts, at % form->parts, form->conversion[form->parts - 1 - at % form->parts]);
    }
    if (++printed % columns) printf(",");
  }
}

void qprintf_V(const char *msg, HVX_Vector V) {
  const char *sign = strchr(msg, '%');
  uint32_t words[WORDS];
  struct form form;
  if (!sign) return (void)printf("%s", msg);
  memcpy(words, &V, sizeof words);
  printf("%.*s", (int)(sign - msg), msg);
  const char *rest = read_form(sign + 1, &form);
  print_vector(&form, words);
  printf("%s", rest);
}

void qprintf_Q(const char *msg, HVX_VectorPred Q) {
  const char *sign = strchr(msg, '%');
  const HVX_Vector V = Q6_V_vand_QR(Q, 0x01010101);
  uint8_t bytes[BYTES];
  uint32_t bits[BYTES / 32] = {0};
  struct form form;
  if (!sign) return (void)printf("%s", msg);
  memcpy(bytes, &V, sizeof bytes);
  for (int at = 0; at < BYTES; ++at) bits[at / 32] |= (uint32_t)(bytes[at] & 1) << at % 32;
  const char *rest = read_form(sign + 1, &form);
  printf("%.*s0x%08x|%08x|%08x|%08x%s", (int)(sign - msg), msg, bits[3], bits[2], bits[1], bits[0], rest);
}

void qprintf_V_all(void) { printf("qprintf_V_all: the caller's registers are not available here; print a vector by qprintf_V.\n"); }
void qprintf_R_all(void) { printf("qprintf_R_all: the caller's registers are not available here.\n"); }
