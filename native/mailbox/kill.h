/* Points at which a test kills or stops a process. Only the build of tests/faults, which defines HBRT_KILL_POINTS, has
 * them: a file $HBRT_FAULTS_DIR/POINT.kill or POINT.stop takes effect once, on the first process that gets there. */
#ifndef HBRT_KILL_H
#define HBRT_KILL_H

#ifdef HBRT_KILL_POINTS
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static inline void hbrt_pass(const char *point, const char *how, int number) {
    char token[PATH_MAX], taken[PATH_MAX];
    const char *directory = getenv("HBRT_FAULTS_DIR");
    if (directory == NULL) return;
    snprintf(token, sizeof token, "%s/%s.%s", directory, point, how);
    snprintf(taken, sizeof taken, "%s/%s.%s.taken", directory, point, how);
    if (rename(token, taken) == 0) raise(number);
}

#define HBRT_KILL_POINT(point) (hbrt_pass(point, "kill", SIGKILL), hbrt_pass(point, "stop", SIGSTOP))
#else
#define HBRT_KILL_POINT(point) ((void)0)
#endif

#endif
