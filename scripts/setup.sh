# Set-up shared by the scripts; sourced, from the repository's root, by a shell with `set -euo pipefail`.
# Every function does nothing where its work is done already. Messages go to stderr.

# The tests start hundreds of commands; with this set, each would compile every module anew.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "==> $*" >&2; }

stop() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Sets INSTALL_ENGINE and REST from the script's arguments.
read_arguments() {
  INSTALL_ENGINE=no
  REST=()
  local argument
  for argument in "$@"; do
    if [ "$argument" = --install-engine ]; then INSTALL_ENGINE=yes; else REST+=("$argument"); fi
  done
}

# Prints a Python >= 3.11 that can make virtual environments; fails where there is none. 3.14.0 takes
# the stack of a WASM call for an overflow and aborts (python/cpython#139653).
find_python() {
  local name
  for name in python3.13 python3.12 python3.11 python3.14 python3; do
    if command -v "$name" >/dev/null 2>&1 \
      && "$name" -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 11) or sys.version_info[:3] == (3, 14, 0))' \
        >/dev/null 2>&1; then
      command -v "$name"
      return
    fi
  done
  return 1
}

is_debian_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

install_packages() {
  say "installing with apt-get: $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# The package lists are fetched once where the machine has none that know the package.
refresh_packages() {
  apt-cache show "$1" >/dev/null 2>&1 || apt-get update -qq >&2
}

ensure_environment() {
  local wanted stamp=.venv/toolwright.stamp
  wanted="$(cat requirements.lock pyproject.toml | sha256sum) $PWD"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && .venv/bin/python -c ''; then return; fi
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then make_environment; fi
  say "installing the locked dependencies into .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --require-hashes --requirement requirements.lock >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --no-index --no-deps --no-build-isolation --editable . >&2
  printf '%s' "$wanted" >"$stamp"
}

make_environment() {
  local python
  if ! python=$(find_python); then
    if [ "$INSTALL_ENGINE" = no ] || ! is_debian_root; then
      stop "Python 3.11 or newer with its venv module is needed (Debian, Ubuntu: apt-get install python3-venv)."
    fi
    refresh_packages python3-venv
    install_packages python3-venv
    python=$(find_python) || stop "This system's Python is older than 3.11; install a newer one."
  fi
  say "making .venv with $python"
  "$python" -m venv --clear .venv
}

engine_answers() {
  .venv/bin/python - <<'PYTHON' >/dev/null 2>&1
import docker

client = docker.from_env(timeout=5)
client.ping()
client.close()
PYTHON
}

# Without --install-engine and without Docker, servers run on the embedded WASM engine.
ensure_engine() {
  if [ "${TOOLWRIGHT_ENGINE:-auto}" = wasm ] || engine_answers; then return; fi
  if [ "$INSTALL_ENGINE" = no ]; then
    say "no Docker engine answers: using the embedded WASM engine (--install-engine installs Docker)"
    return
  fi
  is_debian_root || stop "--install-engine needs root on Debian or Ubuntu."
  local package missing=()
  for package in docker.io iptables mmdebstrap; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    refresh_packages docker.io
    install_packages "${missing[@]}"
  fi
  engine_answers || start_engine
}

# A bare machine may have no control groups mounted: version 2 where it has the controllers that limit
# a container, else each controller of version 1, as Debian's cgroupfs-mount does it.
mount_cgroups() {
  local controller root=/sys/fs/cgroup
  if grep -q cgroup /proc/mounts; then return; fi
  say "mounting the control groups"
  mkdir -p "$root"
  if mount -t cgroup2 cgroup2 "$root" 2>/dev/null; then
    if grep -qw memory "$root/cgroup.controllers" && grep -qw pids "$root/cgroup.controllers"; then
      return
    fi
    umount "$root"
  fi
  mount -t tmpfs cgroup "$root"
  awk 'NR > 1 && $4 == 1 { print $1 }' /proc/cgroups | while read -r controller; do
    mkdir -p "$root/$controller"
    mount -t cgroup -o "$controller" cgroup "$root/$controller" || rmdir "$root/$controller"
  done
}

start_engine() {
  local log=/var/log/toolwright-dockerd.log
  if [ -d /run/systemd/system ]; then
    say "starting the docker service"
    systemctl start docker
    log="journalctl -u docker"
  else
    mount_cgroups
    say "starting dockerd (log: $log)"
    setsid dockerd --pidfile /var/run/docker.pid </dev/null >>"$log" 2>&1 &
  fi
  for _ in $(seq 120); do
    if engine_answers; then return; fi
    sleep 0.25
  done
  if [ -f "$log" ]; then tail -n 20 "$log" >&2; fi
  stop "dockerd does not answer after 30 s. Look at $log."
}

make_engine_ready() { .venv/bin/toolwright setup --engine-only >&2; }

prepare() {
  read_arguments "$@"
  ensure_environment
  ensure_engine
  make_engine_ready
}
