#!/bin/busybox sh
# The first process of a guest (tests/machines/guest.py): the host's files read-only under a layer of
# memory, so that the guest has every program of the host and changes nothing there; then the agent.
export PATH=/bin
busybox mkdir -p /proc /sys /dev /host /layer /root
mount() { busybox mount "$@" || { echo "init: mount $* failed"; busybox poweroff -f; }; }
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(busybox cat /modules); do busybox insmod "/$module" || echo "init: no $module"; done
for word in $(busybox cat /proc/cmdline); do
  case $word in
    stint.name=*) name=${word#*=} ;;
    stint.agent=*) agent=${word#*=} ;;
    stint.kit=*) kit=${word#*=} ;;
  esac
done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
mount -t tmpfs layer /layer
busybox mkdir -p /layer/upper /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /root
for place in proc sys dev; do mount -o move /$place /root/$place; done
mount -t tmpfs tmp /root/tmp
mount -t tmpfs run /root/run
busybox chmod 1777 /root/tmp
busybox mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts pts /root/dev/pts
mount -t tmpfs shm /root/dev/shm
# Machines differ in these.
busybox hostname "$name"
echo "$name" | busybox md5sum | busybox cut -c1-32 >/root/etc/machine-id
# What is not installed on the host, as if it were.
[ -d "/root$kit/root" ] && busybox cp -a "/root$kit/root/." /root/
busybox rm -f /root/run/nologin
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
exec busybox chroot /root python3 -B "$agent" "$kit"
