/* A program of Android that links the vendor's libraries by their names, or opens them. */
#include <android/log.h>
#include <dlfcn.h>
#include <stdio.h>

#include "remote.h"
#include "rpcmem.h"

int main(void) {
  static const char *const names[] = {"libcdsprpc.so", "libadsprpc.so", "libsdsprpc.so"};
  remote_handle64 none = 0;
  for (int at = 0; at < 3; at++) {
    void *library = dlopen(names[at], RTLD_NOW | RTLD_LOCAL);
    if (!library) return __android_log_print(ANDROID_LOG_ERROR, "linked", "no %s: %s", names[at], dlerror());
    if (dlsym(library, "remote_handle64_open") != (void *)remote_handle64_open) return 2;
    if (!dlsym(library, "rpcmem_alloc")) return 3;
  }
  if (!remote_handle64_open(NULL, &none)) return 4;
  if (__android_log_write(ANDROID_LOG_SILENT, "linked", "unseen")) return 5;
  return __android_log_print(ANDROID_LOG_WARN, "linked", "%d libraries", 3) - 1;
}
