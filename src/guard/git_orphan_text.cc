// What the pre-receive hook knows of locks that nobody recorded (ADR 0026), in sh.
#include "base/text.h"
#include "guard/git_hook.h"

namespace stint::guard {
namespace {

// A folder $common/stint/orphans/INODE is one look at one lock file, for as long as that file
// stands:
//   lock    a hard link to it, made before the list: so the inode stays that file's
//   gits    PID START of every git process that could have held it then, and "end"
//   where   BOOT.PIDNS.TIMENS of who looked
//   path    of the lock
//   right.LOOK.free, or right.LOOK.by.NAME: who may remove it. It is taken by a rename, from nobody
//           or from a dead one. There is one look for one inode, and so one right. LOOK is unlike
//           that of every other look: who judged one takes no right of the next, of a new file
//           whose inode has the same number.
// The folder appears whole, by a rename of new.NAME, also after a power cut; it goes by one to
// gone.NAME.
constexpr std::string_view kLooking = R"HOOK(
# ---- locks that nobody recorded
orphans=$common/stint/orphans
# The operator's word: what writes refs here is git, on this machine, and seen in /proc from here.
only_git() {
  o_word=$(git config --file "$common/config" --type=bool --get stint.onlygit 2>/dev/null)
  [ "$o_word" = true ]
}
# That it is not given: a setting that cannot be read is neither.
not_only_git() {
  o_word=$(git config --file "$common/config" --type=bool --get stint.onlygit 2>/dev/null)
  case "$?.$o_word" in 1. | 0.false) ;; *) return 1 ;; esac
}
# Sets own: our receive-pack, which has locked nothing yet, and a 'git push' that runs it and waits:
# that one locks when its server has ended. Who cannot see even his own in /proc, under a name by
# which the others are found, sees nothing there.
own_gits() {
  look "$PPID" && runs "$PPID" && [ "$r_word" = receive-pack ] || return
  { IFS= read -r name <"/proc/$PPID/comm"; } 2>/dev/null && called_git "$name" || return
  own=" $PPID.$p_start "
  above=$p_parent
  look "$above" || return 0
  # Git starts it through a shell, which may stay.
  case "$(tr '\0' ' ' <"/proc/$above/cmdline" 2>/dev/null)" in
    *'sh -c git-receive-pack '*) above=$p_parent && look "$above" || return 0 ;;
  esac
  runs "$above" && [ "$r_word" = push ] && own="$own$above.$p_start "
  return 0
}
# Sets r_word: receive-pack for 'git-receive-pack', 'git receive-pack', 'git -c x=y receive-pack'.
runs() { # PID
  r_word=
  { r_line=$(tr '\0\n' '\n ' <"/proc/$1/cmdline"); } 2>/dev/null || return 1
  r_first=${r_line%%"$line_end"*}
  r_first=${r_first##*/}
  case "$r_first" in git) ;; git-*) r_word=${r_first#git-} && return ;; *) return ;; esac
  while :; do
    case "$r_line" in *"$line_end"*) r_line=${r_line#*"$line_end"} ;; *) r_word= && return ;; esac
    r_word=${r_line%%"$line_end"*}
    case "$r_word" in -c | -C) r_line=${r_line#*"$line_end"} ;; --git-dir=*) ;; *) return ;; esac
  done
}
line_end='
'
# Those that serve or read, and may do so for long; and who receives into another repository: there
# it goes before it locks anything. A worktree, and a folder that links to our refs, is no other.
never_locks() { # PID LOCK
  runs "$1" || return 1
  case "$r_word" in
    daemon | http-backend | shell | upload-pack | upload-archive | pack-objects | cat-file) ;;
    credential-cache--daemon | fsmonitor--daemon) ;;
    receive-pack)
      [ -d "/proc/$1/cwd/" ] && [ ! -e "/proc/$1/cwd/commondir" ] || return 1
      for part in . refs "${2%/*}"; do
        [ ! "/proc/$1/cwd/$part" -ef "$common/$part" ] || return 1
      done
      ;;
    *) return 1 ;;
  esac
}
called_git() { # NAME
  case "$1" in git | git[-.0-9]*) ;; *) return 1 ;; esac
}
gone() { # PID
  case "$(kill -0 "$1" 2>&1)" in *'o such process'*) return 0 ;; esac
  return 1
}
# Every git process that may hold a lock, as PID START. Fails where one of them might not be seen.
list_gits() { # LOCK
  while read -r m_what m_where m_kind m_options m_rest; do
    case "$m_where $m_options" in '/proc '*hidepid=0* | '/proc '*hidepid=off*) ;;
      '/proc '*hidepid=*) return 1 ;;
    esac
  done </proc/self/mounts || return
  for process in /proc/[0-9]*; do
    process=${process#/proc/}
    { IFS= read -r name <"/proc/$process/comm"; } 2>/dev/null || {
      gone "$process" || return
      continue
    }
    called_git "$name" || continue
    look "$process" || {
      gone "$process" || return
      continue
    }
    case "$p_state $own" in Z* | *" $process.$p_start "*) continue ;; esac
    never_locks "$process" "$1" || echo "$process $p_start" || return
  done
  echo end
}
# Sets found: the look at that lock.
find_look() { # LOCK
  for found in "$orphans"/[0-9]*; do
    [ ! "$found/lock" -ef "$common/$1" ] || return 0
  done
  return 1
}
# First the link, then the list: a live holder of this very file is in the list. Newcomers are not.
looked=0
look_at() { # LOCK
  look $$ || return
  made=$orphans/new.$h_name.$$.$p_start
  looked=$((looked + 1))
  rm -rf "$made"
  mkdir -p "$made" && ln "$common/$1" "$made/lock" &&
    echo >"$made/right.${made##*/new.}.$looked.free" && list_gits "$1" >"$made/gits" &&
    echo "$h_name" >"$made/where" && echo "$1" >"$made/path" &&
    sync "$made/gits" "$made/where" "$made/path" &&
    found=$orphans/$(stat -c %i "$made/lock") && mv -T "$made" "$found" && return
  rm -rf "$made"
  return 1
}
)HOOK";

constexpr std::string_view kJudging = R"HOOK(
# Sets w_pid: one of the list that is not sure to be dead.
holder_of() { # LOOK
  w_pid=
  read -r w_here <"$1/where" || return 0
  listed=
  while read -r w_pid w_start; do
    [ "$w_pid" != end ] || listed=all
    case "end $own" in "$w_pid "* | *" $w_pid.$w_start "*) continue ;; esac
    is_dead || return 0
  done <"$1/gits"
  w_pid=
  [ -z "$listed" ]
}
# It cannot end before we do: it waits for us.
waits_for_us() { # PID
  above=$PPID
  while [ "$above" -gt 1 ] && look "$above"; do
    above=$p_parent
    [ "$above" != "$1" ] || return 0
  done
  return 1
}
# Sets of_look: what the names of its right begin with. Before anything of the look is judged: by
# the time the right is taken another may stand under the same name.
which_look() { # LOOK
  for right in "$1"/right.*; do
    of_look=${right##*/}
    of_look=${of_look%.free}
    of_look=${of_look%.by.*}
  done
}
# Run by a process of its own, which is the one that removes: LOOK RIGHT OF_LOOK COMMON HERE. As
# above. A further link is a record's, or of a look from another folder: then it is left to them. A
# record that counts was linked before its git was seen dead; the links are counted before the path
# is compared, so that the one of a path that is gone is not taken for another's.
take_orphan='
  { IFS= read -r line </proc/self/stat; } 2>/dev/null || exit 0
  common=$(cd "$4" && pwd -P) && cd "$1" 2>/dev/null || exit 0
  found=$common/stint/orphans/${1##*/} from=$2 of_look=$3 here=$5
  set -- ${line##*) }
  [ $# -ge 20 ] || exit 0
  shift 19
  name=$here.$$.$1
  mv -T "$from" "$of_look.by.$name" 2>/dev/null || exit 0
  path=
  { read -r path <path; } 2>/dev/null
  links=$(stat -c %h lock)
  if [ "$common/$path" -ef lock ]; then
    [ "$links" = 2 ] || exit 0
    echo "stint: cleared $path: no git process that can have made it is left" >&2
    exec rm -f -- "$common/$path"
  fi
  [ "$found" -ef . ] && mv -T "$found" "${found%/*}/gone.$name" 2>/dev/null || exit 0
  exec rm -rf -- "${found%/*}/gone.$name"
'
take_right() { # LOOK OF_LOOK
  for right in "$1/$2".*; do
    case "$right" in
      *.free) ;;
      *) answerable "${right##*/}" && is_dead || continue ;;
    esac
    sh -c "$take_orphan" stint "$1" "${right##*/}" "$2" "$common" "$h_name" </dev/null
  done
}
# Looks at locks that are no more, and what was left half made.
sweep_looks() {
  for found in "$orphans"/*; do
    case "${found##*/}" in
      new.* | gone.*)
        answerable "${found##*/}" || continue
        w_here=${w_here#new.} w_here=${w_here#gone.}
        is_dead && rm -rf "$found"
        ;;
      [0-9]*)
        which_look "$found"
        path=
        { read -r path <"$found/path"; } 2>/dev/null
        [ "$common/$path" -ef "$found/lock" ] || take_right "$found" "$of_look"
        ;;
    esac
  done
}
# A second in all, and once for each look; not for what is stopped, nor for what waits for us.
tries=20
worth_waiting() {
  [ -n "$w_pid" ] && [ "$w_here" = "$h_name" ] && [ ! -e "$found/waited" ] || return
  case "$p_state" in [Tt]) return 1 ;; esac
  ! waits_for_us "$w_pid" || return
  tries=$((tries - 1))
  [ $tries -gt 0 ] && sleep 0.05 && return
  echo >"$found/waited"
  return 1
}
# Sets why where it stays.
clear_orphan() { # LOCK
  why="and not every process can be seen here, so that it is not known whose it is"
  own_gits && { find_look "$1" || look_at "$1" || find_look "$1"; } || return
  which_look "$found"
  while holder_of "$found"; do
    why="and it cannot be known whether who made it is alive"
    [ -z "$w_pid" ] ||
      why="and the git process $w_pid, which was there when it was first seen, is alive"
    worth_waiting || return
  done
  take_right "$found" "$of_look"
  why="and another push is about to clear it away, or has a link to it"
  [ ! "$found/lock" -ef "$common/$1" ]
}
[ ! -d "$orphans" ] || sweep_looks
)HOOK";

}  // namespace

std::string_view orphan_words() {
  static const std::string text = cat(kLooking, kJudging);
  return text;
}

}  // namespace stint::guard
