#!/usr/bin/env bash
# machines_kit.sh KIT: what the guests of tests/machines are made of: a kernel, a first file system and the
# programs of an NFS server, from Debian's packages. They are unpacked into KIT; only qemu is installed.
set -eu
kit=$(realpath -m "$1")
here=$(dirname "$(realpath "$0")")
[ -e "$kit/.made" ] && [ "$kit/.made" -nt "$here/machines_kit.sh" ] && [ "$kit/.made" -nt "$here/../tests/machines/init.sh" ] && exit 0
"$here/setup.sh" machines
mkdir -p "$kit/packages" "$kit/root" "$kit/first/bin" "$kit/kernel"
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -1)
[ -n "$kernel" ] || { echo "machines_kit.sh: no kernel package is known: run apt-get update" >&2; exit 1; }
fetch() { # fetch PACKAGE FOLDER
  ls "$kit/packages/$1"_*.deb >/dev/null 2>&1 || (cd "$kit/packages" && apt-get download -q "$1" >/dev/null 2>&1)
  dpkg -x "$kit/packages/$1"_*.deb "$2"
}
fetch "$kernel" "$kit/kernel"
fetch busybox-static "$kit/busybox"
for package in nfs-kernel-server nfs-common rpcbind libtirpc3 libtirpc-common libnfsidmap1 libevent-core-2.1-7 \
  keyutils libkeyutils1 kmod libkmod2 libwrap0 libdevmapper1.02.1; do
  fetch "$package" "$kit/root"
done
# The folders of the merged /usr: the packages have both.
for place in bin sbin lib; do
  [ -d "$kit/root/$place" ] || continue
  mkdir -p "$kit/root/usr/$place"
  cp -a "$kit/root/$place/." "$kit/root/usr/$place/"
  rm -rf "${kit:?}/root/$place"
done
cp "$kit"/kernel/boot/vmlinuz-* "$kit/vmlinuz"
mkdir -p "$kit/lib"
rm -rf "$kit/lib/modules"
cp -al "$kit/kernel/lib/modules" "$kit/lib/"
version=$(ls "$kit/lib/modules")
(export LD_LIBRARY_PATH=$kit/root/usr/lib/x86_64-linux-gnu && exec -a depmod "$kit/root/usr/bin/kmod" -b "$kit" "$version")
# The modules that the first file system needs, those that others need first.
: >"$kit/first/modules"
cp "$kit/busybox/bin/busybox" "$kit/first/bin/"
deps() { # deps PATH: as modules.dep has them, the deepest first
  sed -n "s|^$1: *||p" "$kit/lib/modules/$version/modules.dep" | tr ' ' '\n' | tac
  echo "$1"
}
for module in virtio_pci 9pnet_virtio 9p overlay virtio-rng; do
  path=$(grep -o "^[^:]*/$module\.ko[^:]*" "$kit/lib/modules/$version/modules.dep" || true)
  [ -n "$path" ] && deps "$path"
done | awk 'NF && !seen[$0]++' | while read -r path; do
  name=$(basename "$path")
  cp "$kit/lib/modules/$version/$path" "$kit/first/$name"
  echo "$name" >>"$kit/first/modules"
done
cp "$here/../tests/machines/init.sh" "$kit/first/init"
chmod +x "$kit/first/init"
(cd "$kit/first" && find . | "$kit/busybox/bin/busybox" cpio -o -H newc 2>/dev/null) >"$kit/initramfs"
touch "$kit/.made"
