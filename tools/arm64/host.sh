#!/bin/bash
# `make test-arm64`: the C parts and their tests on arm64, by qemu-user in a Debian root under build/arm64.
#
# The root and its virtual environment stay for the next time; `make clean` removes them. All mounts and processes are in namespaces
# of their own, which the kernel takes back, whichever way this ends.
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
root=$tree/build/arm64
python=${PYTHON:-python3}
handler=/proc/sys/fs/binfmt_misc/qemu-aarch64
packages=g++,binutils,pkg-config,cmake,python3,python3-dev,libpython3-dev,python3-venv,procps

fail() {
  printf '%s\n' "$@" >&2
  exit 3
}

# In the namespaces: the root's own mounts, then the checks.
in_namespaces() {
  if [ ! -e "$root/.made" ]; then
    echo "Making a Debian root for arm64 in $root; this takes some minutes ..."
    debootstrap --arch=arm64 --variant=minbase --include=$packages bookworm "$root" >"$tree/build/debootstrap.log" ||
      fail "debootstrap has failed; its log is $tree/build/debootstrap.log."
    rm -f "$root"/var/cache/apt/archives/*.deb
    touch "$root/.made"
  fi
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind -o ro /sys "$root/sys"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t tmpfs tmpfs "$root/run"
  take_tree
  take_packages
  if [ -n "${HBRT_GUIDE_TEXT:-}" ]; then
    cp "$HBRT_GUIDE_TEXT" "$root/root/guide.txt"
  fi
  env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    ${HBRT_GUIDE_TEXT:+HBRT_GUIDE_TEXT=/root/guide.txt} PYTEST_ARGS="${PYTEST_ARGS:-tests/native}" \
    "$(command -v chroot)" "$root" /bin/bash /hbrt/tools/arm64/inside.sh "$@"
}

# The files of this tree, changed ones too; what was built there before stays.
take_tree() {
  mkdir -p "$root/hbrt"
  find "$root/hbrt" -mindepth 1 \( -path "$root/hbrt/.venv" -o -path "$root/hbrt/hbrt/native/lib" -o -name __pycache__ \) -prune -o \
    -not -type d -not -name '*.so' -exec rm -f {} +
  git -C "$tree" ls-files -coz --exclude-standard | tar -C "$tree" --null --ignore-failed-read -cf - -T - | tar -C "$root/hbrt" --no-same-owner -xf -
}

# The packages that the tests use, at their pinned versions: fetched by this machine's pip, as it is configured here, since one under
# qemu takes a quarter of an hour.
take_packages() {
  local site=$root/hbrt/.venv/lib/python3.11/site-packages wanted platforms=() glibc
  wanted=$("$python" - "$tree/pyproject.toml" <<'PROGRAM'
import re, sys, tomllib

project = tomllib.load(open(sys.argv[1], "rb"))["project"]
wanted, extras = ["pip", "hatchling", *project["dependencies"]], ["test"]
for extra in extras:  # which grows
    for one in project["optional-dependencies"][extra]:
        if names := re.fullmatch(r"hbrt\[(.*)\]", one):
            extras += [name for name in names[1].split(",") if name != "docs"]
        else:
            wanted.append(one)
print("\n".join(wanted))
PROGRAM
  )
  ! cmp -s "$site/.wanted" <(printf '%s\n' "$wanted"; cat "$tree/constraints.txt") || return 0
  echo "Fetching packages for arm64 ..."
  for glibc in 17 24 26 27 28 31 34; do
    platforms+=(--platform "manylinux_2_${glibc}_aarch64")
  done
  rm -rf "$root/hbrt/.venv"
  # shellcheck disable=SC2086 # one argument each
  "$python" -m pip --disable-pip-version-check install -qq --root-user-action ignore --no-compile --target "$site" --python-version 3.11 \
    --implementation cp --abi cp311 --abi abi3 --abi none --only-binary :all: --platform manylinux2014_aarch64 \
    "${platforms[@]}" --constraint "$tree/constraints.txt" $wanted
  { printf '%s\n' "$wanted"; cat "$tree/constraints.txt"; } >"$site/.wanted"
}

if [ "${1:-}" = --in-namespaces ]; then
  shift
  in_namespaces "$@"
  exit
fi

[ "$(uname -s)" = Linux ] || fail "This machine is no Linux, which make test-arm64 needs."
[ "$(uname -m)" != aarch64 ] || fail "This machine is arm64 itself: make test runs all of it there."
missing=()
for program in debootstrap:debootstrap qemu-aarch64-static:qemu-user-static unshare:util-linux git:git; do
  command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
done
[ ${#missing[@]} = 0 ] || fail "make test-arm64 makes a Debian root for arm64 and runs it by qemu. These packages are missing: ${missing[*]}." \
  "On Debian and Ubuntu: apt install --no-install-recommends ${missing[*]}"
[ "$(id -u)" = 0 ] || fail "make test-arm64 mounts and changes roots, which takes root's rights: sudo make test-arm64"

inner= is_ours=
end() {
  [ -z "$inner" ] || kill -KILL "$inner" 2>/dev/null || true # with all that runs in the namespaces
  [ -z "$is_ours" ] || echo -1 >"$handler"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

if ! [ -e "$handler" ]; then
  [ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc ||
    fail "The kernel has no binfmt_misc, by which programs for arm64 are started; load that module or take another machine."
fi
if ! [ -e "$handler" ]; then
  # The last letters: the kernel opens qemu now (F), so that the root needs no copy of it.
  printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$(command -v qemu-aarch64-static)"':OCF' \
    >/proc/sys/fs/binfmt_misc/register
  is_ours=1
fi
mkdir -p "$root"
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$0" --in-namespaces "$@" &
inner=$!
wait "$inner" || status=$?
inner=
exit "${status:-0}"
