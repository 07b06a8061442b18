#!/bin/bash
# In the arm64 root, by tools/arm64/host.sh: installs hbrt, and runs what there is in C. Ends at the first thing that is not good.
set -euo pipefail
cd /hbrt
export HBRT_HOME=/run/hbrt
bin=.venv/bin
export PATH=$PWD/$bin:$PATH

step() {
  printf '\n== %s (%ss)\n' "$1" "$SECONDS"
}

step "arm64 by qemu-user: $(uname -m), $(python3 --version), $(gcc -dumpversion)"
[ -e $bin/python ] || python3 -m venv --without-pip .venv
[ -e $bin/hbrt ] || $bin/python -m pip install --quiet --no-index --no-deps --no-build-isolation --editable . --editable packages/hbrt-rknn --editable packages/hbrt-fastrpc
$bin/python native/build.py
# All is good but what qemu-user lacks: the kernel's robust mutexes.
$bin/hbrt doctor >"/run/doctor" || true
cat /run/doctor
[ "$(grep -c '^fail' /run/doctor)" = 1 ] && grep -q '^fail  claim lock' /run/doctor

work=$(mktemp -d)
step "an ARM program and an image of C"
$bin/hbrt cc -Wall -Wextra -Werror -o "$work/softmax" samples/c/softmax.c -lm
$bin/hbrt cc --dsp -Wall -Wextra -Werror -o "$work/vdsp0.so" samples/dsp/softmax_image.cc
HBRT_IMAGE=$work/vdsp0.so "$work/softmax" | tee "$work/row"
grep -qx '0.0320586 0.0871443 0.2368828 0.6439143' "$work/row"

step "softmax from Python"
$bin/python - <<'PROGRAM'
import numpy as np

from arm_client import nn
from arm_client.client import private_board

x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
with private_board() as board:
    found = np.array(nn.softmax(board, x))
power = np.exp(x.astype(np.float64) - x.max())
off = np.abs(found - power / power.sum()).max()
print("largest difference from float64:", off)
assert off < 2e-7
PROGRAM

step "many calls of several programs to two cores, each result looked at"
$bin/hbrt cc -O2 -Wall -Wextra -Werror -o "$work/calls" tools/arm64/calls.c
$bin/hbrt cc --dsp -O2 -Wall -Wextra -Werror -o "$work/calls.so" tools/arm64/calls_image.c
$bin/hbrt start --image "$work/calls.so" --cores 2
children=()
for client in 1 2 3; do
  "$work/calls" "$client" "${HBRT_ARM64_CALLS:-20000}" &
  children+=($!)
done
for child in "${children[@]}"; do
  wait "$child"
done
$bin/hbrt status
$bin/hbrt stop

step "the tests of the C parts"
# LeakSanitizer looks at threads by ptrace, which qemu-user lacks.
# shellcheck disable=SC2086 # several arguments
ASAN_OPTIONS=detect_leaks=0 UNDER_QEMU=1 PYTEST_HBRT_SLOWER=10 $bin/python -m pytest -q -n "$(nproc)" -rsfE --timeout 7200 $PYTEST_ARGS </dev/null
step "good"
