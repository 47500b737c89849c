/* The directory store: a log of numbered files, each put in place by link(2), a snapshot, and a cleaner that removes
   numbers below it, so that they can be linked again. README.md says what stands for what. Variants that must fail:
     NO_LOOK          a writer believes its link, without looking at what is below it by then
     STRAY_IS_VOID    a writer whose file is gone again takes it for a commit that did not count
   LOOK_AT_SNAPSHOT: the look is at the snapshot, as LAW says it, instead of at the file below, as the code does. */

#ifndef NUMBERS
#define NUMBERS 4
#endif
#define WRITERS 3
#define MADE 255              /* the commit that made the store: there is always one */

byte log[NUMBERS + 1];        /* 0: no such file; else the nonce of its commit: writer and try */
byte snapshot = 0;            /* everything up to this number is in a durable table */
byte history[NUMBERS + 1];    /* the nonces that the snapshot knows */

/* What was really so: the first commit of each number. */
byte truth[NUMBERS + 1];

proctype writer(byte me) {
  byte last, below, nonce, i;
  bool tried_twice = false;
  do
  :: /* Reads the store: the snapshot and the log after it. */
     atomic {
       last = snapshot; below = history[snapshot]; i = snapshot + 1;
       do
       :: i <= NUMBERS && log[i] != 0 -> last = i; below = log[i]; i++
       :: else -> break
       od;
       i = 0;
       if :: last == NUMBERS -> goto over :: else fi;
       /* What it decides on is what had been committed up to there. */
       assert(below == truth[last])
     }
     nonce = 1 + me + (tried_twice -> WRITERS : 0);
     if
     :: atomic { log[last + 1] != 0 -> skip }               /* EEXIST: another was first */
     :: atomic { log[last + 1] == 0 ->
          log[last + 1] = nonce;
          if :: truth[last + 1] == 0 -> truth[last + 1] = nonce :: else fi }
#ifdef NO_LOOK
        atomic { assert(truth[last + 1] == nonce) }         /* committed, it says */
#else
        if
#ifdef LOOK_AT_SNAPSHOT
        :: atomic { snapshot <= last && log[last + 1] == nonce ->
#else
        :: atomic { log[last] == below && log[last + 1] == nonce ->
#endif
             assert(truth[last + 1] == nonce) }
        :: else ->
           /* A stray. Whether it counted, the nonces say that the snapshot remembers. */
#ifdef STRAY_IS_VOID
           atomic { assert(truth[last + 1] != nonce) }
#else
           if
           :: atomic { snapshot > last && history[last + 1] == nonce -> assert(truth[last + 1] == nonce) }
           :: atomic { snapshot > last && history[last + 1] != nonce -> assert(truth[last + 1] != nonce) }
           fi
#endif
        fi;
#endif
        if :: tried_twice -> break :: else -> tried_twice = true fi
     fi
  :: break
  od;
over: skip
}

/* One of them makes a snapshot of what it has read, and removes what is below, from the lowest up. */
proctype cleaner() {
  byte to, i;
  do
  :: atomic {
       to = snapshot; i = snapshot + 1;
       do
       :: i <= NUMBERS && log[i] != 0 -> to = i; i++
       :: else -> break
       od;
       i = 0;
       if :: to == snapshot -> goto over :: else fi
     }
     /* Durable, and in force: one commit names it. */
     atomic {
       i = snapshot + 1;
       do
       :: i <= to -> history[i] = log[i]; assert(history[i] == truth[i]); i++
       :: else -> break
       od;
       snapshot = to; i = 1
     }
     do
     :: atomic { i < to -> log[i] = 0; i++ }            /* some are kept: here the last one, 256 in the code */
     :: atomic { i == to -> break }
     :: goto over                                            /* killed */
     od
  od;
over: skip
}

init { atomic {
  log[1] = MADE; truth[1] = MADE;
  run writer(0); run writer(1); run writer(2); run cleaner()
} }
