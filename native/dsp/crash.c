/* An op that crashes: writes its C frames, by name and line, to the file from which the daemon takes its task's
 * message.
 *
 * The dying process runs dsp_server/c_images/symbolize.py on the addresses and waits for it, so the daemon need not
 * read debug information. Stack overflows are handled on the handler's own stack.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "runtime.h"

enum { MAX_FRAMES = 48, MAX_DEPTH = 256, ALTERNATE_STACK_BYTES = 1 << 18, MAX_TEXT = 1024, MAX_ARGUMENTS = 8, NEAR_BYTES = 1 << 16 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGUSR2};
static struct sigaction before[65];
static int trace_fd = -1;
static const char *program[MAX_ARGUMENTS];
static int program_size;

extern char hbrt_dsp_failure[512];

static void *program_counter(const ucontext_t *context) {
#if defined(__x86_64__)
  return (void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (void *)context->uc_mcontext.pc;
#else
  (void)context;
  return NULL;
#endif
}

/* Whether an access near the top of the stack has failed. */
static int is_stack_full(const ucontext_t *context, const void *address) {
#if defined(__x86_64__)
  uintptr_t top = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  uintptr_t top = (uintptr_t)context->uc_mcontext.sp;
#else
  uintptr_t top = (uintptr_t)context;
#endif
  return (uintptr_t)address + NEAR_BYTES > top && (uintptr_t)address < top + NEAR_BYTES;
}

struct stack {
  void *places[MAX_DEPTH];
  int count;
};

/* A return address points after its call, possibly to the next line; the place interrupted by a signal is exact. */
static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *collected) {
  struct stack *stack = collected;
  int is_interrupted = 0;
  uintptr_t place = _Unwind_GetIPInfo(context, &is_interrupted);
  if (stack->count == MAX_DEPTH || place == 0) return _URC_END_OF_STACK;
  stack->places[stack->count++] = (void *)(is_interrupted ? place : place - 1);
  return _URC_NO_REASON;
}

/* The frames of the image function that runs, innermost first; returns their number. */
static int frames_of_image(void **frames, int most, void *interrupted) {
  struct stack stack;
  stack.count = 0;
  _Unwind_Backtrace(collect, &stack);
  int first = 0, kept = 0;
  while (interrupted != NULL && first < stack.count && stack.places[first] != interrupted) first++;
  if (first == stack.count) { /* the stack cannot be read from here: only the place */
    frames[0] = interrupted;
    return interrupted != NULL;
  }
  for (int at = first; at < stack.count && kept < most; at++) {
    Dl_info info;
    if (dladdr(stack.places[at], &info) && info.dli_saddr == (void *)hbrt_dsp_run) break;
    frames[kept++] = stack.places[at];
  }
  return kept;
}

EXPORT int32_t hbrt_dsp_frames(void **frames, int32_t most) { return frames_of_image(frames, most, NULL); }

static const char *name_of(int number) {
  switch (number) {
    case SIGSEGV: return "SIGSEGV (invalid memory reference)";
    case SIGBUS: return "SIGBUS (memory that is not accessible)";
    case SIGFPE: return "SIGFPE (division by zero, or a quotient out of range)";
    case SIGILL: return "SIGILL (invalid instruction)";
    case SIGABRT: return "SIGABRT (abort)";
    default: return "A signal";
  }
}

static void append(char *text, const char *more) { strncat(text, more, MAX_TEXT - strlen(text) - 1); }

static void write_frames(const char *headline, void *interrupted) {
  void *frames[MAX_FRAMES];
  char places[MAX_FRAMES][24];
  const char *arguments[MAX_ARGUMENTS + 2 * MAX_FRAMES + 2];
  int count = frames_of_image(frames, MAX_FRAMES, interrupted), used = 0;
  for (; used < program_size; used++) arguments[used] = program[used];
  arguments[used++] = headline;
  for (int at = 0; at < count; at++) {
    Dl_info info;
    if (!dladdr(frames[at], &info) || info.dli_fname == NULL) continue;
    snprintf(places[at], sizeof places[at], "%#lx", (unsigned long)((char *)frames[at] - (char *)info.dli_fbase));
    arguments[used++] = info.dli_fname;
    arguments[used++] = places[at];
  }
  arguments[used] = NULL;
  pid_t child = vfork();
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(trace_fd, STDOUT_FILENO);
    execv(arguments[0], (char *const *)arguments);
    _exit(127);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 && write(trace_fd, headline, strlen(headline))) return; /* no interpreter: only the headline */
}

static void on_signal(int number, siginfo_t *info, void *context) {
  const int error = errno;
  if (hbrt_dsp_frame == NULL) { /* not in an image's function: call the previous handler */
    if (before[number].sa_flags & SA_SIGINFO)
      before[number].sa_sigaction(number, info, context);
    else if (before[number].sa_handler != SIG_DFL && before[number].sa_handler != SIG_IGN)
      before[number].sa_handler(number);
    else {
      sigaction(number, &before[number], NULL);
      if (info->si_code <= 0) raise(number);
    }
    errno = error;
    return;
  }
  char headline[MAX_TEXT] = "";
  if (number == SIGUSR2) {
    append(headline, "The op's stack");
  } else {
    char address[32] = "";
    const int is_access = info->si_code > 0 && (number == SIGSEGV || number == SIGBUS);
    const int is_full = is_access && is_stack_full(context, info->si_addr);
    append(headline, is_full ? "SIGSEGV (stack overflow)" : name_of(number));
    if (is_access) {
      snprintf(address, sizeof address, " at address 0x%lx", (unsigned long)info->si_addr);
      append(headline, address);
    }
    append(headline, " in an image's C code");
    if (hbrt_dsp_failure[0]) {
      append(headline, "; before that, a call had failed: ");
      append(headline, hbrt_dsp_failure);
    }
  }
  append(headline, " (most recent call first):\n");
  write_frames(headline, program_counter(context));
  errno = error;
  if (number == SIGUSR2) return;
  signal(number, SIG_DFL); /* the instruction faults again */
  if (info->si_code <= 0 || number == SIGABRT) raise(number);
}

/* UBSan calls this for each of its reports, which it also writes to standard error. */
EXPORT void __ubsan_on_report(void) {
  const char *kind, *message = NULL, *file;
  unsigned line, column;
  char *memory, headline[MAX_TEXT] = "UBSan: ";
  void *library = dlopen("libubsan.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void (*get)(const char **, const char **, const char **, unsigned *, unsigned *, char **) = NULL;
  if (library != NULL) *(void **)&get = dlsym(library, "__ubsan_get_current_report_data");
  if (trace_fd < 0 || get == NULL) return;
  get(&kind, &message, &file, &line, &column, &memory);
  append(headline, message != NULL ? message : "undefined behavior");
  append(headline, ", in an image's C code (most recent call first):\n");
  write_frames(headline, NULL);
}

/* Watch this thread for signals raised by an image's functions.
 *
 * fd: receives the text. command: writes it, NULL-terminated; must stay valid. hangs_only: a sanitizer reports
 * crashes. */
EXPORT void hbrt_dsp_watch(int32_t fd, const char *const *command, int32_t hangs_only) {
  struct stack warm = {.count = MAX_DEPTH};
  _Unwind_Backtrace(collect, &warm); /* the first call may allocate */
  trace_fd = fd;
  for (program_size = 0; command[program_size] != NULL && program_size < MAX_ARGUMENTS; program_size++)
    program[program_size] = command[program_size];
  stack_t stack = {.ss_size = ALTERNATE_STACK_BYTES};
  stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  action.sa_sigaction = on_signal;
  for (size_t at = 0; at < sizeof signals / sizeof *signals; at++)
    if (signals[at] == SIGUSR2 || !hangs_only) sigaction(signals[at], &action, &before[signals[at]]);
}
