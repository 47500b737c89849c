// What the two hooks know of locks that a killed git process left behind (ADR 0022), in sh.
#include "base/text.h"
#include "guard/git_hook.h"

namespace stint::guard {
namespace {

// A folder in $common/stint/locks stands for one git process and what it has locked: a hard link to
// each lock file, so that its inode cannot become another file's. It is called
// BOOT.PIDNS.TIMENS.PID.START, and who clears up after a dead one adds ".by." and its own name.
constexpr std::string_view kLockWords = R"HOOK(
# ---- whose locks these are
# Sets p_state, p_parent and p_start: a number alone may since be another process's.
look() { # PID
  { IFS= read -r p_line <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${p_line##*) }
  [ $# -ge 20 ] || return 1
  p_state=$1 p_parent=$2
  shift 19
  p_start=$1
}
# Sets h_boot and h_name: BOOT.PIDNS.TIMENS. Within one of these PID and START name one process.
# BOOT~ where the repository is on a file system that other machines may have mounted as well.
here() {
  { IFS= read -r h_boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || return 1
  case "$(stat -f -c %T "$common" 2>/dev/null)" in
    ext2/ext3 | xfs | btrfs | f2fs | zfs | tmpfs) ;;
    *) h_boot=$h_boot~ ;;
  esac
  h_pids=$(readlink /proc/self/ns/pid) || return 1
  h_times=$(readlink /proc/self/ns/time 2>/dev/null) || h_times='[0]'
  h_pids=${h_pids#*'['} h_times=${h_times#*'['}
  h_name=$h_boot.${h_pids%']'}.${h_times%']'}
}
locks=$common/stint/locks
)HOOK";

constexpr std::string_view kClearingHead = R"HOOK(#!/bin/sh
# stint-guard-hook 5
# Clears away the locks of git processes that were killed here, where it is sure that they are theirs:
# else the next push would find them. Refuses nothing. Installed and removed by 'stint guard install'
# and 'stint guard uninstall'; do not edit.
updates=$(cat)
clear_up() {
LC_ALL=C
export LC_ALL
common=${GIT_DIR:-.}
[ ! -f "$common/commondir" ] || common=$(git rev-parse --git-common-dir) || return
)HOOK";

constexpr std::string_view kClearing = R"HOOK(
# Sets w_here, w_pid and w_start: who is answerable for a record of that name.
answerable() { # NAME
  w_name=${1##*.by.}
  w_start=${w_name##*.} w_name=${w_name%.*}
  w_pid=${w_name##*.} w_here=${w_name%.*}
  case "$w_pid.$w_start" in .* | *. | *[!0-9.]*) return 1 ;; esac
}
# Of another life of this machine. A container may show any boot id: only the first namespace counts,
# and only a file system that no other machine can have mounted: as we see it, and as it was seen by
# who wrote the name. What is on a disk here may be mounted over the network there.
before_this_boot() {
  case "$w_here" in *~.*) return 1 ;; *.4026531836.*) ;; *) return 1 ;; esac
  case "$h_name" in *~.*) return 1 ;; *.4026531836.*) ;; *) return 1 ;; esac
  [ "${w_here%%.*}" != "$h_boot" ]
}
# Sure to be dead. Where it cannot be known it counts as alive.
is_dead() {
  if [ "$w_here" != "$h_name" ]; then
    before_this_boot
    return
  fi
  if look "$w_pid"; then
    [ "$p_start" != "$w_start" ] || [ "$p_state" = Z ] || [ "$p_state" = X ]
    return
  fi
  # Hidden from us is not gone.
  case "$(kill -0 "$w_pid" 2>&1)" in *'o such process'*) return 0 ;; esac
  return 1
}
# The git is dead; the hook that writes its record may live a little longer.
being_made() { # RECORD
  [ ! -e "$1/whole" ] || return 1
  { read -r w_pid w_start <"$1/hook"; } 2>/dev/null || return 1
  ! is_dead
}
# Run by a process of its own, which is the one that removes: RECORD COMMON HERE LATE. Only one gets
# the record by its rename, and nobody else does so again before that one is dead. So what it
# compared is still what it removes. LATE: also what was linked when its git was dead already.
take='
  { IFS= read -r line </proc/self/stat; } 2>/dev/null || exit 0
  common=$2
  record=${1%.by.*}
  here=$3
  from=$1
  late=$4
  set -- ${line##*) }
  [ $# -ge 20 ] || exit 0
  shift 19
  mine=$record.by.$here.$$.$1
  mv "$from" "$mine" 2>/dev/null || exit 0
  set --
  for list in names $late; do
    [ -f "$mine/$list" ] || continue
    while read -r n path; do
      [ "$common/$path" -ef "$mine/$n" ] || continue
      echo "stint: cleared $path: the git process that had made it is dead" >&2
      set -- "$@" "$common/$path"
    done <"$mine/$list"
  done
  [ $# -eq 0 ] || exec rm -f -- "$@"
  exec rm -rf -- "$mine"
'
here || return
)HOOK";

constexpr std::string_view kTelling = R"HOOK(
# The second time removes the record itself; a third is for one whose remover was killed.
for round in 1 2 3; do
  for record in "$locks"/*; do
    [ -d "$record" ] || continue
    answerable "${record##*/}" && is_dead || continue
    case "$record" in *.by.*) ;; *) being_made "$record" && continue ;; esac
    # Where orphans are cleared, what stands there when its git is dead may be another's already.
    late=
    [ ! -f "$record/late" ] || ! not_only_git || late=late
    sh -c "$take" stint "$record" "$common" "$h_name" $late </dev/null
  done
done

# What still stands in the way of this push, and what is known of it.
tell() { # LOCK
  [ -e "$common/$1" ] || return 0
  for link in "$locks"/*/[0-9]*; do
    [ "$link" -ef "$common/$1" ] || continue
    link=${link%/*}
    answerable "${link##*/}" || continue
    of=$w_pid
    if [ "$w_here" != "$h_name" ]; then
      echo "stint: lock: $1 is held by a git process of another machine or container" >&2
    elif case "${link##*/}" in *.by.*) ;; *) false ;; esac; then
      echo "stint: lock: $1 is being cleared away by the process $of" >&2
    elif is_dead && being_made "$link"; then
      echo "stint: lock: $1 was made by the git process $of, which is dead; it is cleared away" \
        "once its hook, the process $w_pid, has ended" >&2
    else
      echo "stint: lock: $1 is held by the git process $of, which is alive" >&2
    fi
    return
  done
  why="and it is not known whose it is"
  ! only_git || ! clear_orphan "$1" || return 0
  echo "stint: lock: $1 stands since $(date -r "$common/$1" '+%F %T %z' 2>/dev/null), $why;" \
    "whoever runs this server removes it once no git is at work there" >&2
}
read -r head 2>/dev/null <"$common/HEAD"
n=0
while read -r old new ref; do
  n=$((n + 1))
  [ $n -le 50 ] || break
  tell "$ref.lock"
  [ "$head" != "ref: $ref" ] || tell HEAD.lock
done <<EOF
$updates
EOF
}
(clear_up)
before="${0%/*}/pre-receive.before-stint"
[ -x "$before" ] || exit 0
printf '%s\n' "$updates" | "$before" "$@"
)HOOK";

}  // namespace

std::string_view lock_words() { return kLockWords; }

std::string_view clearing_hook_text() {
  static const std::string text =
      cat(kClearingHead, kLockWords, kClearing, orphan_words(), kTelling);
  return text;
}

}  // namespace stint::guard
