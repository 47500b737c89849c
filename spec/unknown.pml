/* Requests whose answer is lost, on one resource. A request that nobody waits for any more can still be taken up by the
   store, at any later time. README.md says what stands for what. Variant that must fail:
     READ_SETTLES     a read that shows nothing of mine is taken for "it did not happen" */

#ifndef TOKENS
#define TOKENS 3
#endif
#define NOBODY 2

byte token = 0;               /* newest issued: the version of own/R */
byte claim = NOBODY;          /* of the present holder */
bool alive = false;

/* Under way to the store: what the holder waits for, and what it has given up waiting for. */
typedef Request { bool under_way; byte expected };
Request sent[2];
Request lost[2];
byte answer[2];               /* to what was sent */
#define NONE    0
#define GRANTED 1
#define REFUSED 2

/* What was really so. */
byte granted_to[TOKENS + 1];  /* 0: not yet; holder + 1 */
bool denied[2];               /* the holder said: what I asked for did not happen and will not */

inline apply(request, h, told) {
  if
  :: request.expected == token && !alive && token < TOKENS ->
     assert(!denied[h]);                     /* unknown was reported wrongly */
     token++;
     assert(granted_to[token] == 0);         /* no grant of one token twice   G1 */
     granted_to[token] = h + 1;
     claim = h; alive = true;
     told = GRANTED
  :: else -> told = REFUSED
  fi;
  request.under_way = false; request.expected = 0
}

proctype store() {
  byte nobody_hears;
end:
  do
  :: atomic { sent[0].under_way -> apply(sent[0], 0, answer[0]) }
  :: atomic { sent[1].under_way -> apply(sent[1], 1, answer[1]) }
  :: atomic { lost[0].under_way -> apply(lost[0], 0, nobody_hears); nobody_hears = 0 }
  :: atomic { lost[1].under_way -> apply(lost[1], 1, nobody_hears); nobody_hears = 0 }
  :: atomic { lost[0].under_way -> lost[0].under_way = false; lost[0].expected = 0 }
  :: atomic { lost[1].under_way -> lost[1].under_way = false; lost[1].expected = 0 }
  :: atomic { alive -> alive = false }
  :: atomic { alive -> alive = false; claim = NOBODY }      /* released */
  od
}

proctype holder(byte me) {
  byte seen, mine;
  do
  :: /* A new claim each time: what was lost of the one before must be settled first, or left unknown for good. */
     atomic { !lost[me].under_way && !sent[me].under_way -> denied[me] = false; seen = token; mine = 0 }
     atomic { sent[me].under_way = true; sent[me].expected = seen; answer[me] = NONE }
     if
     :: atomic { answer[me] == GRANTED -> mine = seen + 1 }
     :: atomic { answer[me] == REFUSED -> denied[me] = true }
     :: /* The answer is lost: unknown. */
        atomic {
          if :: sent[me].under_way -> lost[me].under_way = true; lost[me].expected = seen
             :: else -> skip
          fi;
          sent[me].under_way = false; sent[me].expected = 0; answer[me] = NONE
        }
        if
        /* A read that shows the effect settles it. */
        :: atomic { claim == me && token == seen + 1 -> mine = token }
#ifdef READ_SETTLES
        :: atomic { !(claim == me && token == seen + 1) -> denied[me] = true }
#else
        /* That it did not happen: only by a commit of one's own on the version that the lost one expected, after which
           the lost one cannot apply. If this is refused, the version may have moved, which a read shows for good. */
        :: atomic { token == seen -> sent[me].under_way = true; sent[me].expected = seen }
           if
           :: atomic { answer[me] == GRANTED -> mine = seen + 1; answer[me] = NONE }
           :: atomic { answer[me] == REFUSED -> answer[me] = NONE }
              if
              :: atomic { token > seen && claim == me && token == seen + 1 -> mine = token }
              :: atomic { token > seen && !(claim == me && token == seen + 1) -> denied[me] = true }
              :: atomic { token == seen -> skip }             /* it stays unknown */
              fi
           fi
        :: atomic { token > seen && !(claim == me && token == seen + 1) -> denied[me] = true }
#endif
        :: skip                                                /* it stays unknown */
        fi
     fi;
     /* Who says that it holds a lease was granted that very one. */
     atomic { assert(mine == 0 || granted_to[mine] == me + 1); mine = 0; seen = 0; answer[me] = NONE }
  :: break
  od
}

init { atomic { run store(); run holder(0); run holder(1) } }
