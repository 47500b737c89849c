/* The guard at a file: fence files, staged bodies and marks beside it, and writers that can stop before each system
   call. README.md says what stands for what. ONCE: each grant may write once (mode once). SAME: two processes share
   the higher token. Variants that must fail:
     LEAVE_STAGES     a seal leaves the staged bodies of lower tokens
     OWN_FENCE_ONLY   the last look before the rename is for one's own fence alone
     WRITE_UNSEALED   a write above the fence does not seal first
     NO_MARK          (with ONCE) no mark that the grant was used
     GONE_IS_DONE     (with ONCE) a repeat takes "the body that was staged is gone" for "it was put in place" */

#define WRITERS 3
#if defined(ONCE) || defined(SAME)
#define TOKENS 2
#ifdef ONCE
#define TOKEN_OF(w) (1 + (w) / 2)            /* 1 1 2 */
#else
#define TOKEN_OF(w) (1 + ((w) + 1) / 2)      /* 1 2 2 */
#endif
#else
#define TOKENS 3
#define TOKEN_OF(w) (1 + (w))                /* 1 2 3 */
#endif

/* The directory. Bit t of fences: .FILE.fence.t stands. Bit w of stages: what writer w staged. */
byte fences = 0;
byte stages = 0;
byte mark[TOKENS + 1];        /* .FILE.used.t: 1 + the writer whose stage it names */

/* What was really so. */
byte sealed = 0;              /* highest token whose seal was reported done */
byte landed = 0;              /* token of what stands in the file's place */
bool overtaken[WRITERS];      /* another token's write landed since it read */
bool has_read[WRITERS];
byte landings[TOKENS + 1];       /* how often each token has landed */

#define STANDS(t) ((fences >> (t)) & 1)
#define ABOVE(f, t) (((f) >> ((t) + 1)) != 0)
#define STAGED(w) ((stages >> (w)) & 1)

inline land(w) {              /* the rename has been done */
  stages = stages & ~(1 << (w));
  assert(t >= sealed);                       /* nothing stale lands           G5 */
  assert(t >= landed);                       /* accepted tokens never go back */
  assert(!overtaken[me]);                    /* no update is lost */
  landings[t]++;
#ifdef ONCE
  assert(landings[t] == 1);                     /* one write a grant */
#endif
  landed = t;
  for (i : 0 .. WRITERS - 1) {
    if :: has_read[i] && TOKEN_OF(i) != t -> overtaken[i] = true :: else fi
  }
  i = 0
}

/* Removes the lower ones among the names that were listed, one call each, in any order. */
inline remove_lower() {
  do
  :: atomic { low_fences != 0 ->
       if
       :: low_fences & 2 -> fences = fences & ~2; low_fences = low_fences & ~2
       :: low_fences & 4 -> fences = fences & ~4; low_fences = low_fences & ~4
       fi }
  :: atomic { low_stages != 0 ->
       if
       :: low_stages & 1 -> stages = stages & ~1; low_stages = low_stages & ~1
       :: low_stages & 2 -> stages = stages & ~2; low_stages = low_stages & ~2
       fi }
#ifdef ONCE
  :: atomic { low_marks -> mark[1] = 0; low_marks = false }
#endif
  :: atomic { low_fences == 0 && low_stages == 0 && !low_marks -> break }
  od
}

/* One listing: what is lower than t is remembered for removal. */
inline list() {
  low_fences = fences & ((1 << t) - 1);
  low_stages = 0; low_marks = false;
#ifndef LEAVE_STAGES
  for (i : 0 .. WRITERS - 1) {
    if :: STAGED(i) && TOKEN_OF(i) < t -> low_stages = low_stages | (1 << i) :: else fi
  }
  i = 0;
#endif
  if :: t > 1 && mark[1] != 0 -> low_marks = true :: else fi
}

inline forget_list() { low_fences = 0; low_stages = 0; low_marks = false }

/* seal_site */
inline seal() {
  do
  :: atomic { ABOVE(fences, t) -> goto refused }
  :: atomic { !ABOVE(fences, t) -> skip }
     atomic { fences = fences | (1 << t) }           /* created, or it stood there already */
     if
     :: atomic { !ABOVE(fences, t) && STANDS(t) -> list() }
        remove_lower();
        break
     :: atomic { ABOVE(fences, t) || !STANDS(t) -> skip }   /* look again */
     fi
  od
}

/* may_land: the last look. */
inline look() {
  do
#if defined(OWN_FENCE_ONLY)
  :: atomic { STANDS(t) -> break }
  :: atomic { !STANDS(t) -> skip } seal()
#elif defined(WRITE_UNSEALED)
  :: atomic { !ABOVE(fences, t) -> break }
  :: atomic { ABOVE(fences, t) -> goto refused }
#else
  :: atomic { STANDS(t) && !ABOVE(fences, t) -> list() }
     remove_lower();
     break
  :: atomic { !STANDS(t) || ABOVE(fences, t) -> skip } seal()
#endif
  od
}

proctype writer(byte me) {
  byte t = TOKEN_OF(me);
  byte low_fences, low_stages, i, other;
  bool low_marks;
  if
  :: /* seal, then read, then write */
     seal();
     atomic { if :: t > sealed -> sealed = t :: else fi }
     atomic { has_read[me] = true }
  :: skip                                            /* a write that depends on nothing */
  fi;
  /* sealed_for_writing */
#ifdef WRITE_UNSEALED
  if
  :: atomic { ABOVE(fences, t) -> goto refused }
  :: atomic { !ABOVE(fences, t) -> skip }
  fi;
#else
  if
  :: atomic { STANDS(t) -> skip }
  :: atomic { !STANDS(t) -> skip } seal()
  fi;
#endif
  atomic { stages = stages | (1 << me) }
#if defined(ONCE) && !defined(NO_MARK)
  /* land_once */
  if
  :: atomic { mark[t] != 0 -> other = mark[t] - 1; goto repeated }
  :: atomic { mark[t] == 0 -> skip }
  fi;
  if
  :: atomic { mark[t] != 0 -> other = mark[t] - 1; goto repeated }     /* EEXIST */
  :: atomic { mark[t] == 0 && STAGED(me) -> mark[t] = me + 1 }
  :: atomic { mark[t] == 0 && !STAGED(me) -> goto refused }
  fi;
#endif
  look();
  if
  :: atomic { STAGED(me) -> land(me) }
  :: atomic { !STAGED(me) -> goto gone }             /* ENOENT */
  fi;
  goto over;

#if defined(ONCE) && !defined(NO_MARK)
repeated:
  /* The same write, asked for again: what was left half-way is finished. */
  if
  :: atomic { other == me -> goto refused }
  :: atomic { other != me && STAGED(other) -> skip }
     look();
     if
     :: atomic { STAGED(other) -> land(other) }
     :: atomic { !STAGED(other) -> skip }
#ifdef GONE_IS_DONE
        goto done
#else
        goto removed
#endif
     fi
  :: atomic { other != me && !STAGED(other) -> skip }
#ifndef GONE_IS_DONE
removed:
     /* Put in place by who began it, or removed by a higher seal, whose fence then stands. */
     look()
#endif
  fi;
done:
  atomic { assert(landings[t] == 1) }                   /* "done" is said of what was done */
  goto over;
#endif

gone:
#if defined(ONCE) && !defined(NO_MARK)
  /* A repeat was quicker, or a higher seal removed it. */
  look();
  atomic { assert(landings[t] == 1) }
#endif
refused: skip;
over: skip
}

init { atomic { run writer(0); run writer(1); run writer(2) } }
