/**
 * Python inside a C program: started by the first call, entered by any thread, intact in a forked child.
 *
 * The build needs no part of Python, and the library runs with any version: it looks functions up by name. In a process
 * that is Python, or that embeds it, it uses that Python.
 */
#define _GNU_SOURCE
#include "host.h"

#include "fast.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <langinfo.h>
#include <link.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define LAYOUT_VERSION 9U
enum { MAX_WAITS = 256, MIN_DESCRIPTORS = 4 }; /* maximum of concurrent waiting threads; more are not shown */
enum { GIL_LOCKED = 0, GIL_UNLOCKED = 1 };

/** A waiting thread, for Python: its task, pthread_self(), and its kernel thread ID. */
struct shown {
  uint64_t task, self;
  int32_t thread;
};

/** The interface between this library and arm_client/c_library. Change its version with it. */
static struct {
  uint32_t version;
  const char *(*site)(uint64_t); /* for Python: where the program made this thread's call, or where it runs */
  int32_t is_embedded;           /* this library started Python */
  _Atomic int32_t is_over;       /* no thread may enter anymore */
  _Atomic uint64_t forking;      /* pthread_self() of a thread whose fork is handled by Python itself */
  _Atomic int32_t is_interrupted; /* a Python program received Ctrl-C while in here */
  void (*find)(struct hbrt_entry *); /* from Python: sets an entry's function */
  void (*end)(void);             /* from Python: called when the process ends */
  void *lent;                    /* address of hbrt_lent */
  void (*watch_releases)(void);  /* for Python */
  const char *(*wait_at)(int32_t, struct shown *); /* for Python: like `site`, for the waits from 0 on; NULL after the last */
  const char *(*place_in_program)(char *); /* for Python: like `site`, for the call with a given return address */
  int32_t (*left)(void);         /* for Python: hbrt_left */
  void (*answer)(int64_t);       /* for Python: the result of this thread's call, a status or the address of a string */
} host = {.version = LAYOUT_VERSION};

/** Waiting threads: where the program called (NULL if the entry is free), for which task, and the thread's IDs. */
static struct {
  _Atomic(void *) site;
  _Atomic uint64_t task, self;
  _Atomic int32_t thread;
} waits[MAX_WAITS];

/** The Python functions that are called here. */
static struct {
  int (*is_initialized)(void);
  int (*gil_ensure)(void);
  void (*gil_release)(int);
  void *(*this_thread_state)(void);
  void *(*save_thread)(void);
  int (*run)(const char *);
  void (*set_interrupt)(void);
  void (*before_fork)(void);
  void (*after_fork_in_parent)(void);
  void (*after_fork_in_child)(void);
} python;

static const struct {
  const char *name;
  void **function;
} NEEDED[] = {
    {"Py_IsInitialized", (void **)&python.is_initialized},
    {"PyGILState_Ensure", (void **)&python.gil_ensure},
    {"PyGILState_Release", (void **)&python.gil_release},
    {"PyGILState_GetThisThreadState", (void **)&python.this_thread_state},
    {"PyEval_SaveThread", (void **)&python.save_thread},
    {"PyRun_SimpleString", (void **)&python.run},
    {"PyErr_SetInterrupt", (void **)&python.set_interrupt},
    {"PyOS_BeforeFork", (void **)&python.before_fork},
    {"PyOS_AfterFork_Parent", (void **)&python.after_fork_in_parent},
    {"PyOS_AfterFork_Child", (void **)&python.after_fork_in_child},
};

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int state; /* 0 not tried, 1 ready, -1 failed */
static __thread bool is_known;  /* Python keeps a thread state for this thread */
static __thread enum { HOLDS_NOTHING, HOLDS_START, HOLDS_PYTHON } in_fork;
static __thread int gil_before_fork;
static __thread bool is_pipe_blocked_in_fork;
static __thread void *call_site;
static __thread int32_t this_thread; /* the kernel's thread ID, 0 until it is needed */
static __thread char site_text[PATH_MAX + 32];

/** Whether an address is in one of C's own libraries: for a call from there, the program's line is reported. */
static bool is_c_librarys(void *address) {
  static const char *const THEIRS[] = {"libc.", "libc-", "libm.", "libstdc++.", "libasan.", "libubsan.", "ld-"};
  Dl_info found;
  if (!dladdr(address, &found) || !found.dli_fname) return false;
  const char *slash = strrchr(found.dli_fname, '/'), *name = slash ? slash + 1 : found.dli_fname;
  for (size_t at = 0; at < sizeof THEIRS / sizeof *THEIRS; at++)
    if (strncmp(name, THEIRS[at], strlen(THEIRS[at])) == 0) return true;
  return false;
}

/** The address after the instruction interrupted by the signal that this thread is handling: the program's, if in a C
 * library. */
static char *program_at(void *instruction) {
  void *frames[512];
  int count = backtrace(frames, sizeof frames / sizeof *frames), at = 0;
  while (at < count && frames[at] != instruction) at++;
  if (!is_c_librarys(instruction)) return (char *)instruction + 1;
  while (at < count && is_c_librarys(frames[at])) at++;
  return at < count ? frames[at] : (char *)instruction + 1;
}

/** `path+0x1234`: the file that contains the instruction before an address, and its offset there; "" if unknown. */
static const char *place_before(char *behind) {
  Dl_info found;
  struct link_map *map = NULL;
  if (!behind || !dladdr1(behind - 1, &found, (void **)&map, RTLD_DL_LINKMAP) || !map) return "";
  char program[PATH_MAX] = "";
  const char *path = map->l_name;
  if (!*path) {
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return "";
    path = program;
  }
  snprintf(site_text, sizeof site_text, "%s+%#lx", path, (unsigned long)behind - 1 - map->l_addr);
  return site_text;
}

/** Where the program made this thread's call. If there is none, where `instruction`, interrupted by a signal, is; 0 if
 * none. */
static const char *site(uint64_t instruction) {
  if (call_site || !instruction) return place_before(call_site);
  return place_before(program_at((void *)(uintptr_t)instruction));
}

static __thread struct hbrt_call *current;

static void answer(int64_t value) {
  if (!current) return;
  current->answer = value;
  current->has_answer = true;
}

static const char *place_in_program(char *behind) { return is_c_librarys(behind) ? "" : place_before(behind); }

static const char *wait_at(int32_t at, struct shown *wait) {
  if (at >= MAX_WAITS) return NULL;
  *wait = (struct shown){atomic_load(&waits[at].task), atomic_load(&waits[at].self), atomic_load(&waits[at].thread)};
  return place_before(atomic_load(&waits[at].site));
}

int32_t hbrt_wait_begins(void *from, uint64_t task) {
  static __thread uint32_t last;
  for (uint32_t tried = 0; tried < MAX_WAITS; tried++) {
    uint32_t at = (last + tried) % MAX_WAITS;
    void *none = NULL;
    if (!atomic_compare_exchange_strong(&waits[at].site, &none, from)) continue;
    if (!this_thread) this_thread = (int32_t)syscall(SYS_gettid);
    atomic_store(&waits[at].task, task);
    atomic_store(&waits[at].self, (uint64_t)pthread_self());
    atomic_store(&waits[at].thread, this_thread);
    last = at;
    return (int32_t)at;
  }
  return -1;
}

void hbrt_wait_ends(int32_t wait) {
  if (wait < 0) return;
  atomic_store(&waits[wait].task, 0);
  atomic_store(&waits[wait].site, NULL);
}

static char said[PATH_MAX + 256];

static void say(const char *sentence, const char *what) {
  snprintf(said, sizeof said, "%s%s", sentence, what);
  fprintf(stderr, "hbrt: %s\n", said);
}

const char *hbrt_said(void) { return said; }

/** Whether a file exists. */
static bool is_there(const char *path) { return access(path, F_OK) == 0; }

/** The rest of the first line of a file that begins with a word and " = "; false if there is none. */
static bool setting_of(const char *path, const char *word, char *value, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  char line[PATH_MAX + 64];
  bool is_found = false;
  while (!is_found && fgets(line, sizeof line, file)) {
    char *equals = strchr(line, '=');
    if (!equals || strncmp(line, word, strlen(word)) != 0) continue;
    char *start = equals + 1 + strspn(equals + 1, " ");
    start[strcspn(start, "\r\n")] = 0;
    snprintf(value, size, "%s", start);
    is_found = true;
  }
  fclose(file);
  return is_found;
}

/** Remove the last component of a path. */
static void cut(char *path) {
  char *slash = strrchr(path, '/');
  *(slash ? slash : path) = 0;
}

/**
 * The Python of the environment in which this library is installed, and its shared library (as the loader takes it).
 *
 * In an installation: the environment's python, from the path of this file. In a clone: what the build, or the last
 * 'hbrt cc', has written next to this file. $HBRT_PYTHON overrides both.
 */
static bool find_python(char *executable, char *shared) {
  Dl_info here;
  char record[PATH_MAX + 16], root[PATH_MAX], config[PATH_MAX + 16], home[PATH_MAX], version[32] = "";
  if (!dladdr((void *)&host, &here) || !realpath(here.dli_fname, root)) return false;
  cut(root);
  snprintf(record, sizeof record, "%s/python.cfg", root);
  for (int level = 0; level < 3; level++) cut(root); /* hbrt/native/lib */
  const char *packages = strstr(root, "/site-packages");
  const char *given = getenv("HBRT_PYTHON");
  *executable = *shared = 0;
  if (given && *given) {
    snprintf(executable, PATH_MAX, "%s", given);
  } else if (packages && !packages[strlen("/site-packages")]) {
    cut(root);
    snprintf(version, sizeof version, "%s", strrchr(root, '/') + 1); /* python3.11 */
    cut(root);
    cut(root);
    snprintf(executable, PATH_MAX, "%.*s/bin/%s", PATH_MAX - 40, root, version);
  } else if (setting_of(record, "executable", executable, PATH_MAX)) {
    setting_of(record, "library", shared, PATH_MAX);
  } else {
    return false;
  }
  if (*shared && is_there(shared)) return true;
  snprintf(config, sizeof config, "%s", executable);
  cut(config);
  cut(config);
  strncat(config, "/pyvenv.cfg", sizeof config - strlen(config) - 1);
  if (!setting_of(config, "home", home, sizeof home)) {
    snprintf(home, sizeof home, "%s", executable);
    cut(home);
  }
  char resolved[PATH_MAX];
  if (!*version && realpath(executable, resolved)) snprintf(version, sizeof version, "%s", strrchr(resolved, '/') + 1);
  cut(home);
  snprintf(shared, PATH_MAX, "%.*s/lib/lib%s.so.1.0", PATH_MAX - 64, home, version);
  if (!is_there(shared)) snprintf(shared, PATH_MAX, "lib%s.so.1.0", version); /* the loader's default paths */
  return true;
}

/** Look up the Python functions used here; returns the name of a missing one, or NULL. */
static const char *look_up(void *from) {
  for (size_t at = 0; at < sizeof NEEDED / sizeof *NEEDED; at++)
    if (!(*NEEDED[at].function = dlsym(from, NEEDED[at].name))) return NEEDED[at].name;
  return NULL;
}

/**
 * Decode a path as Python encodes it: in the user's locale, which the program need not have set, or as UTF-8 where that
 * locale has ASCII alone. Returns whether it has.
 */
static bool decode(const char *path, wchar_t *text) {
  locale_t locale = newlocale(LC_CTYPE_MASK, "", NULL);
  bool is_ascii = !locale || !strcmp(nl_langinfo_l(CODESET, locale), "ANSI_X3.4-1968");
  if (is_ascii) {
    if (locale) freelocale(locale);
    locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
  }
  locale_t before = locale ? uselocale(locale) : NULL;
  size_t length = mbstowcs(text, path, PATH_MAX);
  for (size_t at = 0; length == (size_t)-1 && at <= strlen(path); at++)
    text[at] = (wchar_t)(path[at] & 0x80 ? 0xdc00 + (unsigned char)path[at] : path[at]); /* Python's "surrogateescape" */
  if (locale) {
    uselocale(before);
    freelocale(locale);
  }
  return is_ascii;
}

/** Initialize Python as the environment's python would, except for signals, which are left to the program. */
static bool initialize(void *library, const char *executable) {
  static wchar_t name[PATH_MAX]; /* Python keeps the address */
  void *(*create)(void) = (void *(*)(void))dlsym(library, "PyInitConfig_Create");
  if (create) { /* from 3.14 on; remove what is below once 3.15 is required */
    int (*set_text)(void *, const char *, const char *) = (int (*)(void *, const char *, const char *))dlsym(library, "PyInitConfig_SetStr");
    int (*set_number)(void *, const char *, int64_t) = (int (*)(void *, const char *, int64_t))dlsym(library, "PyInitConfig_SetInt");
    int (*start)(void *) = (int (*)(void *))dlsym(library, "Py_InitializeFromInitConfig");
    int (*error)(void *, const char **) = (int (*)(void *, const char **))dlsym(library, "PyInitConfig_GetError");
    void (*free_config)(void *) = (void (*)(void *))dlsym(library, "PyInitConfig_Free");
    if (!set_text || !set_number || !start || !error || !free_config) return false;
    void *config = create();
    const char *why = NULL;
    bool is_good = config && !set_text(config, "program_name", executable) && !set_number(config, "use_environment", !getenv("PYTHONHOME")) &&
                   !set_number(config, "user_site_directory", 1) && !set_number(config, "install_signal_handlers", 0) &&
                   !start(config);
    if (!is_good && config && error(config, &why) && why) say("Python failed to start: ", why);
    if (config) free_config(config);
    return is_good;
  }
  void (*set_program_name)(const wchar_t *) = (void (*)(const wchar_t *))dlsym(library, "Py_SetProgramName");
  void (*start)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
  if (!set_program_name || !start) return false;
  int *ignores_environment = dlsym(library, "Py_IgnoreEnvironmentFlag");
  if (ignores_environment && getenv("PYTHONHOME")) *ignores_environment = 1; /* a different Python, which would end this process */
  int *has_utf8 = dlsym(library, "Py_UTF8Mode");
  if (decode(executable, name) && has_utf8 && !getenv("PYTHONUTF8")) *has_utf8 = 1; /* as the environment's python does */
  set_program_name(name);
  start(0);
  return python.is_initialized() != 0;
}

/** Whether enough descriptors are free for Python's start: if one is missing, Python ends the process. */
static bool is_short_of_descriptors; /* then the next call tries again */
static bool has_descriptors(void) {
  int taken[MIN_DESCRIPTORS], count = 0;
  while (count < MIN_DESCRIPTORS && (taken[count] = open("/", O_PATH | O_CLOEXEC)) >= 0) count++;
  for (int at = 0; at < count; at++) close(taken[at]);
  is_short_of_descriptors = count < MIN_DESCRIPTORS;
  return !is_short_of_descriptors;
}

/** Load and start Python in this process. */
static bool start_python(void) {
  char executable[PATH_MAX], shared[PATH_MAX];
  if (!has_descriptors()) {
    say("no file descriptors are free to start Python: raise the limit of open files (ulimit -n), or close files.", "");
    return false;
  }
  if (!find_python(executable, shared)) {
    say("libhbrt.so does not know its Python: run 'hbrt cc' of your environment once, or set HBRT_PYTHON to its python.", "");
    return false;
  }
  if (!is_there(executable) && errno != ENOENT && errno != ENOTDIR) { /* it is in another user's home, for example */
    char what[PATH_MAX + 128];
    snprintf(what, sizeof what, "%s: %s", executable, strerror(errno));
    say("cannot reach the Python of hbrt's environment, ", what);
    return false;
  }
  if (!is_there(executable)) {
    say(executable, " no longer exists: run 'hbrt cc' of the environment that hbrt is in now, or set HBRT_PYTHON to its python.");
    return false;
  }
  void *library = dlopen(shared, RTLD_NOW | RTLD_GLOBAL); /* global: C extension modules look up its symbols */
  if (!library) {
    say("cannot load Python's shared library: install it (Debian: libpython3-dev), or use a Python built with --enable-shared: ", dlerror());
    return false;
  }
  const char *missing = look_up(library);
  if (missing || !initialize(library, executable)) {
    say("Python failed to start inside this program: ", missing ? missing : executable);
    return false;
  }
  host.is_embedded = 1;
  python.save_thread();
  return true;
}

/** A write to a dead board's socket raises SIGPIPE: Python ignores that signal, the program may not.
 * Block it in this thread while Python runs; returns true if it was not blocked, and `unblock_pipe` must follow. */
static bool block_pipe(void) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  return !pthread_sigmask(SIG_BLOCK, &pipe, &before) && !sigismember(&before, SIGPIPE);
}

static void unblock_pipe(void) {
  static const struct timespec AT_ONCE = {0, 0};
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  while (sigtimedwait(&pipe, NULL, &AT_ONCE) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_UNBLOCK, &pipe, NULL);
}

/* From glibc: runs before pthread's keys are destroyed, including Python's. Without it, a thread's state stays. */
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle;

/** A thread for which Python has kept a state ends. */
static void forget_thread(void *unused) {
  (void)unused;
  if (atomic_load(&host.is_over)) return;
  bool is_pipe_blocked = block_pipe();
  python.gil_ensure();
  python.gil_release(GIL_LOCKED);
  python.gil_release(GIL_UNLOCKED);
  if (is_pipe_blocked) unblock_pipe();
}

/** Keep a Python state for a C thread: otherwise each call creates a new one, and loses the thread's own objects. */
static void introduce_thread(void) {
  is_known = true;
  if (python.this_thread_state()) return; /* a thread created by Python */
  python.gil_ensure();
  python.save_thread();
  if (__cxa_thread_atexit_impl) __cxa_thread_atexit_impl(forget_thread, NULL, &__dso_handle);
}

/** Around a fork in C. Python's own fork (os.fork) does all this itself, and sets `forking` first. */
static void before_fork(void) {
  if (atomic_load(&host.forking) == (uint64_t)pthread_self()) return;
  pthread_mutex_lock(&starting);
  in_fork = HOLDS_START;
  if (atomic_load(&state) != 1) return;
  is_pipe_blocked_in_fork = block_pipe();
  if (!is_known) introduce_thread(); /* the child continues with this thread's state, so it must survive the fork */
  gil_before_fork = python.gil_ensure();
  python.before_fork();
  in_fork = HOLDS_PYTHON;
}

static void after_fork(void (*python_does)(void)) {
  if (in_fork == HOLDS_PYTHON) {
    python_does();
    python.gil_release(gil_before_fork);
    if (is_pipe_blocked_in_fork) unblock_pipe();
  }
  if (in_fork) pthread_mutex_unlock(&starting);
  in_fork = HOLDS_NOTHING;
}

static void after_fork_in_parent(void) { after_fork(python.after_fork_in_parent); }

/** In a child: drop the parent's state. */
static void forget_lent(void) {
  atomic_store(&hbrt_lent, NULL);
  for (int at = 0; at < MAX_WAITS; at++) hbrt_wait_ends(at);
  this_thread = 0;
}

static void after_fork_in_child(void) {
  forget_lent();
  after_fork(python.after_fork_in_child);
}

/** The process ends: detach, and report findings and leaks. Python itself stays, because threads may still be
 * running. */
static void end(void) {
  if (atomic_load(&state) != 1 || !host.is_embedded || atomic_exchange(&host.is_over, 1)) return;
  fflush(NULL); /* this may set the exit code, which ends the process at once */
  bool is_pipe_blocked = block_pipe();
  host.end();
  if (is_pipe_blocked) unblock_pipe();
}

/** Registered before the program's own static objects are constructed: their destructors run before `end` and may still
 * make calls. */
__attribute__((constructor)) static void prepare(void) { atexit(end); }

/** Have Python load arm_client and set its functions. */
static bool connect(void) {
  static const char *const PROGRAM =
      "exec('''\n"
      "import sys\n"
      "try:\n"
      "    from arm_client.c_library import connect\n"
      "    connect(%#lx)\n"
      "except Exception as error:\n"
      "    sys.stderr.write(f\"hbrt: {sys.executable} cannot serve libhbrt.so: {type(error).__name__}: {error}\\\\n\")\n"
      "''', {})\n";
  char text[1024];
  snprintf(text, sizeof text, PROGRAM, (unsigned long)&host);
  int gil = python.gil_ensure();
  bool is_good = python.run(text) == 0 && host.find && host.end;
  python.gil_release(gil);
  return is_good;
}

/** Signals that Python claims while it is loaded. */
static const int TAKEN[] = {SIGINT, SIGPIPE, SIGXFSZ};
enum { TAKEN_COUNT = sizeof TAKEN / sizeof *TAKEN };

static bool start_here(void) {
  struct sigaction programs[TAKEN_COUNT];
  for (int at = 0; at < TAKEN_COUNT; at++) sigaction(TAKEN[at], NULL, &programs[at]);
  bool is_good = start_python() && connect();
  for (int at = 0; at < TAKEN_COUNT; at++) sigaction(TAKEN[at], &programs[at], NULL);
  return is_good && pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

static bool start(void) {
  void *here;
  backtrace(&here, 1); /* load now what is needed later, not in a signal handler */
  host.site = site;
  host.wait_at = wait_at;
  host.place_in_program = place_in_program;
  host.lent = &hbrt_lent;
  host.watch_releases = hbrt_watch_releases;
  host.left = hbrt_left;
  host.answer = answer;
  hbrt_in_python = !look_up(RTLD_DEFAULT) && python.is_initialized();
  return hbrt_in_python ? connect() && pthread_atfork(NULL, NULL, forget_lent) == 0 : start_here();
}

void hbrt_leave(const struct hbrt_call *call) {
  call_site = call->site;
  hbrt_caller = call->caller;
  current = call->outer;
  hbrt_wait_ends(call->wait);
  if (atomic_load(&host.is_interrupted) && atomic_exchange(&host.is_interrupted, 0)) python.set_interrupt();
  if (call->is_pipe_blocked) {
    int kept = errno;
    unblock_pipe();
    errno = kept;
  }
  pthread_setcancelstate(call->cancel_state, NULL);
}

hbrt_function hbrt_enter(struct hbrt_call *call, struct hbrt_entry *entry, void *from) {
  call->site = call_site;
  call->caller = hbrt_caller;
  call_site = hbrt_caller ? hbrt_caller : from;
  hbrt_caller = NULL; /* calls from a callback have their own line */
  call->outer = current;
  call->has_answer = false;
  current = call;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel_state);
  call->is_pipe_blocked = block_pipe(); /* before Python starts */
  call->wait = strstr(entry->name, "WaitTaskDone") ? hbrt_wait_begins(call_site, 0) : -1;
  if (!atomic_load(&state)) {
    pthread_mutex_lock(&starting);
    if (!atomic_load(&state)) atomic_store(&state, start() ? 1 : is_short_of_descriptors ? 0 : -1);
    pthread_mutex_unlock(&starting);
  }
  hbrt_function function = NULL;
  if (atomic_load(&state) == 1 && !atomic_load(&host.is_over)) {
    if (!is_known) introduce_thread();
    function = __atomic_load_n(&entry->function, __ATOMIC_ACQUIRE);
    if (!function) {
      host.find(entry);
      function = __atomic_load_n(&entry->function, __ATOMIC_ACQUIRE);
    }
  }
  if (!function) hbrt_leave(call);
  return function;
}
