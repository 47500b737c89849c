#!/usr/bin/env bash
# machines.sh BUILD [PLAY...]: plays on whole machines, each with a kernel of its own in qemu on this host (docs/proof.md): the
# clock of a store's machine is set (clock), a directory is shared by NFS between two machines (nfs), the power is cut (power).
# Prints what was looked at; exit 1 if anything was wrong. About 35 minutes on two cores without KVM.
#   STINT_MACHINES_SECONDS: how long each history on NFS (90). STINT_CUTS: power cuts of each store (10).
set -u
build=$(realpath "${1:-build}")
shift $(($# > 0))
here=$(dirname "$(realpath "$0")")
"$here/machines_kit.sh" "$build/machines" || exit 1
export STINT_BUILD=$build
code=0
[ $# -gt 0 ] || set -- clock nfs power
for play in "$@"; do
  "$here/timed" "$play" python3 -B "$here/../tests/machines/${play}_play.py" || code=1
done
exit $code
