#!/usr/bin/env bash
# The other side of the interoperability tests: torch, transformers and compressed-tensors for Python, and llama.cpp's
# tools, as Debian packages of a newer release, in a root folder of their own (.peers/), so that the system stays as it is.
#   tests/interop/peers.sh create        make the folder, or add what it lacks: about 260 MB to fetch, a few minutes; needs
#                                        root
#   tests/interop/peers.sh run CMD...    run inside; the checkout and /tmp are seen under the same paths
# Mounts live in a private namespace: they end with the command, so the folder can be deleted at any time.
# Exit code 3: cannot be made here (no root, or no apt-get).
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
root=$checkout/.peers
suite=forky
packages="python3-torch python3-transformers python3-compressed-tensors python3-safetensors"
packages="$packages llama.cpp-tools llama.cpp-tools-extra python3-gguf python3-onnx python3-onnxruntime"
stamp=$root/.ready

say() { echo "set-up: $*" >&2; }

inside() {
  unshare --mount --propagation private bash -c '
    root=$1 checkout=$2 here=$3; shift 3
    mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
    for folder in "$checkout" /tmp; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
    exec chroot "$root" /usr/bin/env -C "$here" HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 "$@"
  ' -- "$root" "$checkout" "$@"
}

debootstrap_root() {
  say "making .peers/ from Debian $suite ($packages), about 260 MB to fetch"
  rm -rf "$root"
  mkdir -p "$root"
  # The machine's own mirror.
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sort -u | head -1)
  debootstrap --variant=minbase --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$suite" "$root" \
    "$mirror" /usr/share/debootstrap/scripts/sid >"$root/debootstrap.log" 2>&1 ||
    { tail -20 "$root/debootstrap.log" >&2; say "debootstrap failed"; exit 1; }
  cp /etc/resolv.conf "$root/etc/resolv.conf"
}

create() {
  # One at a time: what comes second finds the folder made.
  exec 9>"$checkout/.peers-lock"
  flock 9
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$suite $packages" ] && return
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "the peers need root and apt-get (Debian); run this as root to have them in .peers/"
    exit 3
  fi
  if ! command -v debootstrap >/dev/null; then
    say "installing debootstrap"
    apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5 update >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5 install -y --no-install-recommends debootstrap >&2
  fi
  if [ "$(cut -d' ' -f1 "$stamp" 2>/dev/null)" = "$suite" ]; then
    say "adding to .peers/ what it lacks of: $packages"
  else
    debootstrap_root
  fi
  # shellcheck disable=SC2086
  inside / sh -c '
    apt() { apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root "$@"; }
    apt install -y --no-install-recommends "$@" || { apt update && apt install -y --no-install-recommends "$@"; }
  ' -- $packages >"$root/install.log" 2>&1 ||
    { tail -20 "$root/install.log" >&2; say "installing the peers failed"; exit 1; }
  inside / apt-get clean
  echo "$suite $packages" >"$stamp"
}

case ${1:-} in
create) create ;;
run)
  shift
  [ -f "$stamp" ] || { say "no .peers/ yet: run tests/interop/peers.sh create"; exit 3; }
  inside "$(pwd)" "$@"
  ;;
*)
  echo "usage: tests/interop/peers.sh create | run COMMAND..." >&2
  exit 2
  ;;
esac
