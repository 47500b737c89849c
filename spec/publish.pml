/* Fences of a file inside a tree, while a publish exchanges the tree. README.md says what stands for what. Trees are numbers: 0 stands
   at first, 1 takes its place; a writer or sealer works in the tree that it has opened. Variants that must fail:
     PLAIN          what comes along lets its own token in
     NO_LOOK        a sealer does not look whether its tree still stands
     NOT_HANDED     the tree that was put away hands nothing over (the fence must stand, also if nothing stale lands)
     NOT_CARRIED    nothing comes along before the exchange (the fence must stand) */

byte stands = 0;              /* the tree at the path */
byte fences[2];               /* bit t: .FILE.fence.t in that tree */
byte carried[2];              /* bit t: .FILE.carried.t */
byte stages[2];               /* bit w: what the late writer w has staged there */
byte newest = 1;              /* by the store */
byte sealed = 0;              /* the highest token whose seal was told as done */
byte kept = 1;                /* the highest fence that stood where a seal was done, at the beginning: token 1's */
bool settled = false;         /* the publish is over */

#define HAS(set, t) (((set) >> (t)) & 1)
#define ABOVE(set, t) (((set) >> ((t) + 1)) != 0)

/* As seal_site does, in the tree `here`; the last look is with the last listing of spec/file.pml, which has the steps in between. */
inline seal_in() {
  do
  :: atomic { here = stands }                                        /* Site::open, reopen */
     if
     :: atomic { ABOVE(fences[here] | carried[here], t) -> goto refused }
     :: atomic { !ABOVE(fences[here] | carried[here], t) && HAS(fences[here], t) -> skip }
     :: atomic { !ABOVE(fences[here] | carried[here], t) && !HAS(fences[here], t) -> skip }
#ifdef PLAIN
        if
        :: HAS(carried[here], t) -> skip
        :: !HAS(carried[here], t) -> atomic { if :: newest != t -> goto refused :: else fi }
        fi;
#else
        atomic { if :: newest != t -> goto refused :: else fi };     /* the store's word */
#endif
     fi;
     atomic { fences[here] = fences[here] | (1 << t) }
     if
     :: atomic { ABOVE(fences[here] | carried[here], t) -> goto refused }
     :: atomic { !ABOVE(fences[here] | carried[here], t) ->
          fences[here] = fences[here] & ~((1 << t) - 1); carried[here] = 0;
          if :: t == 2 -> stages[here] = 0 :: else fi }
     fi;
#ifdef NO_LOOK
     break
#else
     if
     :: atomic { here == stands -> break }
     :: atomic { here != stands -> skip }
     fi
#endif
  od
}

/* Token 1, which has written before: its fence stands. */
proctype late(byte me) {
  byte t = 1; byte here;
  atomic { here = stands }
  if
  :: atomic { HAS(fences[here], t) -> skip }
  :: atomic { !HAS(fences[here], t) -> skip } seal_in()
  fi;
  atomic { stages[here] = stages[here] | (1 << me) }
  /* may_land and the rename, which fails when its stage is gone */
  if
  :: atomic { ABOVE(fences[here] | carried[here], t) -> goto refused }
  :: atomic { !ABOVE(fences[here] | carried[here], t) -> skip }
  fi;
  atomic {
    if
    :: HAS(stages[here], me) -> assert(here != stands || t >= sealed)          /* G5 */
    :: else
    fi
  }
refused: skip
}

/* Token 2: granted, seals, and is told so. */
proctype successor() {
  byte t = 2; byte here;
  atomic { newest = 2 }
  seal_in();
  atomic { sealed = t; kept = t }
refused: skip
}

proctype publisher() {
  byte seen;
#ifndef NOT_CARRIED
  atomic { seen = fences[0] }                                          /* carry_fences */
  atomic { carried[1] = carried[1] | seen }
#endif
  atomic { stands = 1 }                                                /* the exchange */
#ifndef NOT_HANDED
  atomic { seen = fences[0] | carried[0] }                             /* hand_over_fences */
  atomic { if :: seen > (fences[1] | carried[1]) -> carried[1] = carried[1] | seen :: else fi }
#endif
  settled = true
}

/* What stands is never below what was sealed, at the latest when the publish is over; and from before, at every moment. */
proctype watcher() {
end:
  atomic { fences[stands] == 0 && carried[stands] == 0 -> assert(false) }
}
proctype at_the_end() {
end:
  atomic { settled && kept == 2 -> assert(ABOVE(fences[1] | carried[1], 1)) }
}

init {
  atomic {
    fences[0] = 1 << 1;
    run late(0); run late(1); run successor(); run publisher(); run watcher(); run at_the_end()
  }
}
