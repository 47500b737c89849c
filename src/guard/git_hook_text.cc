#include "base/text.h"
#include "guard/git_hook.h"

namespace stint::guard {
namespace {

// Configuration of the repository:
//   stint.guarded   "PATTERN FENCE", any number: who touches a ref of the pattern must carry that
//                   fence ("*": any); without one: refs/heads/* *
//   stint.fenceref  the prefix of fences; default refs/stint/fence/
//   stint.descends  "NEW OLD", any number: generations that an operator has declared to follow
constexpr std::string_view kRefusingHead = R"HOOK(#!/bin/sh
# stint-guard-hook 5
# Refuses whatever would write to a guarded branch without a fence that is at least as high as the one
# that stands, or would lower, force or delete a fence. Installed and removed by
# 'stint guard install' and 'stint guard uninstall'; do not edit.
LC_ALL=C
export LC_ALL
updates=$(cat)
common=$GIT_DIR
if [ -z "$common" ] || [ -f "$common/commondir" ]; then common=$(git rev-parse --git-common-dir); fi
)HOOK";

constexpr std::string_view kText = R"HOOK(
none() {
  case "$1" in *[!0]*) return 1 ;; esac
  return 0
}
# Makes the record when the first lock is to be noted. Only of the git that runs this hook itself: no
# script and no 'git hook run' between us.
begin_record() {
  { IFS= read -r name <"/proc/$PPID/comm"; } 2>/dev/null || return
  case "$name" in git | git-*) ;; *) return 1 ;; esac
  case " $(tr '\0' ' ' <"/proc/$PPID/cmdline") " in
    *' hook '*) return 1 ;;
    *receive-pack*) receives=yes ;;
  esac
  here && look "$PPID" || return
  git_start=$p_start
  record=$locks/$h_name.$PPID.$git_start
  [ -d "$locks" ] || mkdir -p "$locks" || return
  mkdir "$record" && look $$ && echo "$$ $p_start" >"$record/hook"
}
note_lock() { # PATH
  [ -f "$common/$1" ] || return 0
  [ $count -gt 0 ] || begin_record || return
  count=$((count + 1))
  [ $count -le 50 ] || return
  ln "$common/$1" "$record/$count" || return
  # First the link, then the look: while our git lives nobody clears its lock, so that was it.
  list=late
  look "$PPID" && [ "$p_start" = "$git_start" ] && [ "$p_state" != Z ] && [ "$p_state" != X ] &&
    list=names
  echo "$count $1" >>"$record/$list"
}
receiving() {
  case " $(tr '\0' ' ' <"/proc/$PPID/cmdline")" in
    *' receive-pack '* | *[\ /]git-receive-pack\ *) ;;
    *) return 1 ;;
  esac
}
# Only locks that are sure to be our git's own: it names the ref, and what is in the lock is what it
# writes. Who packs refs has not locked those that it names: what stands there is another's.
# A receive-pack packs none, whoever has packed-refs locked, or was killed and left it so.
record_locks() {
  [ ! -f "$GIT_DIR/commondir" ] || return
  [ ! -e "$common/packed-refs.lock" ] || receiving || return
  read -r head <"$common/HEAD"
  while read -r old new ref; do
    case "$ref" in
      HEAD) head= && note_lock HEAD.lock || return ;;
      refs/*)
        none "$new" && continue
        read -r word <"$common/$ref.lock" && [ "$word" = "$new" ] || continue
        note_lock "$ref.lock" || return
        [ "$head" != "ref: $ref" ] || along=$receives
        ;;
    esac
  done <<EOF
$updates
EOF
  # Newer gits lock HEAD along with its branch too, and do not name it.
  [ -z "$along" ] || [ -z "$head" ] || note_lock HEAD.lock || return
  [ $count -eq 0 ] || echo >"$record/whole"
}
case "$1" in
  prepared) count=0 along= receives= && record_locks 2>/dev/null ;;
  committed | aborted)
    if [ -d "$locks" ] && look "$PPID"; then
      for record in "$locks"/*".$PPID.$p_start"; do
        [ ! -d "$record" ] || rm -rf "$record"
      done
    fi
    ;;
esac
before="${0%/*}/reference-transaction.before-stint"
if [ -x "$before" ]; then
  printf '%s\n' "$updates" | "$before" "$@" || exit 1
fi
# Only here every ref of the transaction is locked, and compared with its old value.
[ "$1" = prepared ] || exit 0
# What was pushed is judged as it is: not what refs/replace/ or a graft shows in its place, nor by
# settings that came with the push.
GIT_NO_REPLACE_OBJECTS=1
GIT_GRAFT_FILE=/dev/null/none
export GIT_NO_REPLACE_OBJECTS GIT_GRAFT_FILE
unset GIT_REPLACE_REF_BASE GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT

refuse() {
  echo "stint: refused: $*" >&2
  exit 1
}
hex() { # TEXT LEAST MOST
  case "$1" in *[!0-9a-f]*) return 1 ;; esac
  [ ${#1} -ge "$2" ] && [ ${#1} -le "$3" ]
}
number() { # TEXT LEAST
  case "$1" in '' | *[!0-9]* | 0?*) return 1 ;; esac
  [ ${#1} -le 16 ] && [ "$1" -ge "$2" ] && [ "$1" -le 9007199254740991 ]
}
# Sets f_resource f_generation f_token f_seq f_claim; fails on anything that is no fence.
parse() {
  n=0
  while IFS= read -r line; do
    n=$((n + 1))
    case "$n $line" in
      '1 stint fence 1') ;;
      '2 resource '?*) f_resource=${line#resource } ;;
      '3 generation '*) f_generation=${line#generation }; hex "$f_generation" 32 32 || return 1 ;;
      '4 token '*) f_token=${line#token }; number "$f_token" 1 || return 1 ;;
      '5 seq '*) f_seq=${line#seq }; number "$f_seq" 0 || return 1 ;;
      '6 claim -' | '6 claim nobody') f_claim=${line#claim } ;;
      '6 claim '*) f_claim=${line#claim }; hex "$f_claim" 32 64 || return 1 ;;
      '7 owner '*) ;;
      '8 nonce '*) hex "${line#nonce }" 32 32 || return 1 ;;
      '9 used '?*' '?*) ;;
      *) return 1 ;;
    esac
  done
  [ $n -ge 8 ]
}
load() { # OBJECT
  kind=$(git cat-file -t "$1" 2>/dev/null) || return 1
  case "$kind" in
    blob) text=$(git cat-file blob "$1" && echo .) || return 1 ;;
    commit) text=$(git cat-file commit "$1" | sed '1,/^$/d' && echo .) || return 1 ;;
    *) return 1 ;;
  esac
  text=${text%.}
  case "$text" in *'
') ;; *) return 1 ;; esac
  text=${text%?}
  parse <<EOF
$text
EOF
}
# The value that stands now: under the lock, so it cannot change while we decide.
standing() { # OLD REF
  current=$1
  none "$1" || return 0
  # Of this very name: 'git rev-parse' would go on to look for a tag or branch that is called so.
  current=$(git for-each-ref --format='%(refname) %(objectname)' "$2" 2>/dev/null) ||
    refuse "$2 cannot be read"
  case "$current" in "$2 "*) current=${current#"$2 "} && return 0 ;; esac
  [ -e "$(git rev-parse --git-path "$2")" ] && refuse "$2 is damaged"
  current=
}
# A line that leaves its ref as it is. git packs refs, and then takes the loose copies away, in
# transactions that look like a write without an old value and like a deletion.
[ -n "$common" ] || refuse "the repository cannot be found"
packed=$common/packed-refs
unchanged() { # OLD NEW REF
  if none "$2"; then
    # Pruned: packed with that very value. Who deletes keeps packed-refs locked while this hook runs.
    [ -f "$common/$3" ] && [ ! -L "$packed" ] && [ ! -e "$packed.lock" ] || return 1
    read -r loose <"$common/$3" && [ "$loose" = "$1" ] && grep -qxF "$1 $3" "$packed" 2>/dev/null
    return
  fi
  # Packed: the loose copy counts, and stays while packed-refs is locked. Who writes keeps the ref
  # itself locked while this hook runs.
  [ -f "$common/$3" ] && [ -e "$packed.lock" ] && [ ! -e "$common/$3.lock" ] && return 0
  standing "$1" "$3"
  [ "$current" = "$2" ]
}
descends() { # NEW OLD
  git config --get-all stint.descends | grep -qxF "$1 $2"
}
# Decides about one fence: REF, the object that stands (may be empty), the new object.
judge() {
  none "$3" && refuse "the fence $1 must not be deleted"
  load "$3" || refuse "what was pushed as the fence $1 is no fence"
  [ -n "$2" ] || return 0
  n_resource=$f_resource n_generation=$f_generation n_token=$f_token n_seq=$f_seq n_claim=$f_claim
  load "$2" || refuse "the fence $1 is unreadable; whoever runs this server must look at it"
  [ "$n_resource" = "$f_resource" ] || refuse "the fence $1 belongs to another resource"
  if [ "$n_generation" != "$f_generation" ]; then
    descends "$n_generation" "$f_generation" ||
      refuse "the fence $1 is of another store's life; an operator must say that this one follows it"
    [ "$n_token" -gt "$f_token" ] ||
      refuse "stale: token $n_token, and the fence $1 stands at $f_token"
    return 0
  fi
  [ "$n_token" -ge "$f_token" ] ||
    refuse "stale: token $n_token, and the fence $1 stands at $f_token"
  [ "$n_token" -eq "$f_token" ] || return 0
  [ "$f_claim" != nobody ] || refuse "token $n_token was revoked: the fence $1 is nobody's"
  [ "$f_claim" = - ] || [ "$n_claim" = "$f_claim" ] ||
    refuse "the fence $1 has token $n_token under another claim"
  [ "$n_seq" -gt "$f_seq" ] || refuse "the fence $1 has seen this push or a later one"
}

# No replacement of an object either: whoever reads a guarded branch here would see it.
while read -r old new ref; do
  case "$ref" in refs/replace/*) ;; *) continue ;; esac
  none "$new" || unchanged "$old" "$new" "$ref" ||
    refuse "$ref: this repository is guarded, and none of its objects may be replaced"
done <<EOF
$updates
EOF
prefix=$(git config --get stint.fenceref) || prefix=refs/stint/fence/
guarded=$(git config --get-all stint.guarded) || guarded='refs/heads/* *'
fences=
created=
while read -r old new ref; do
  case "$ref" in
    "$prefix"stint-probe-*) ;; # of 'stint guard check': guards nothing, and goes again
    "$prefix"*)
      unchanged "$old" "$new" "$ref" && continue
      standing "$old" "$ref"
      judge "$ref" "$current" "$new"
      fences="$fences $ref "
      [ -n "$current" ] || created="$created $ref "
      ;;
  esac
done <<EOF
$updates
EOF
symbolic() { # REF
  [ -f "$common/$1" ] && read -r word <"$common/$1" || return 1
  case "$word" in 'ref: '*) return 0 ;; esac
  return 1
}
while read -r old new ref; do
  case "$ref" in '' | "$prefix"*) continue ;; esac
  # git puts what it leads to in place after the fence: a newer one could be there by then.
  [ -z "$fences" ] || [ "$ref" = HEAD ] || ! symbolic "$ref" ||
    refuse "$ref is a symbolic ref: push to ${word#ref: } itself"
  while read -r pattern fence; do
    case "$ref" in $pattern) ;; *) continue ;; esac
    unchanged "$old" "$new" "$ref" && break
    case "$fences" in
      *" $fence "*) carried=$fence ;;
      ?*) [ "$fence" = '*' ] || refuse "$ref is guarded by $fence, which this push does not carry"
        carried=${fences# } carried=${carried%% *} ;;
      *) refuse "$ref is guarded: push it with 'stint push', inside 'stint run'" ;;
    esac
    case "$created" in *" $carried "*) refuse "$carried is new: seal in a push of its own first" ;; esac
    none "$new" && refuse "$ref is guarded and must not be deleted"
    standing "$old" "$ref"
    [ -z "$current" ] || git merge-base --is-ancestor "$current" "$new" ||
      refuse "$ref is guarded and must not be forced"
  done <<EOF
$guarded
EOF
done <<EOF
$updates
EOF
exit 0
)HOOK";

}  // namespace

std::string_view hook_text() {
  static const std::string text = cat(kRefusingHead, lock_words(), kText);
  return text;
}

}  // namespace stint::guard
