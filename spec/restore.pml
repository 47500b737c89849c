/* A store that is put back to a backup, once or again, and goes on. README.md says what stands for what. Variants that
   must fail:
     NO_FLOOR         an operator's "recovered" leaves the tokens as they came back
     NO_MEMORY        nobody notices that it went back: no anchor, no fence, no pin (docs/limits.md says so) */

#ifndef TICKS
#define TICKS 4
#endif
#define A_TICK 4              /* tokens that fit into one tick: 2^20 a second in the code; half are granted */
#define MOST (TICKS * A_TICK + A_TICK)

/* The store. Its number of commits tells how far it is. */
byte token, floor, commits;
/* Its backup. */
byte b_token, b_floor, b_commits;
bool has_backup = false;

byte now = 1;
byte anchor = 0;              /* commits that a client remembers, outside of the store */
bool recovered = false;       /* the operator has spoken since the store went back */

/* What was really so. */
bool issued[MOST + 1];
byte highest = 0;             /* issued ever */
byte in_tick = 0;             /* grants of this tick */

#define BACK (commits < anchor && !recovered)

proctype client() {
  byte next;
  do
  :: atomic {
#ifndef NO_MEMORY
       !BACK &&
#endif
       in_tick < A_TICK / 2 ->
       next = (token > floor -> token : floor) + 1;
       if
       :: next > MOST -> break
       :: else ->
          assert(!issued[next]);             /* no grant of one token twice   G1 G12 */
          assert(next > highest);            /* tokens grow                   G1 */
          issued[next] = true; highest = next;
          token = next; commits++; in_tick++;
          anchor = (commits > anchor -> commits : anchor)
       fi;
       next = 0
     }
  :: break
  od
}

proctype operator() {
  byte most;
  do
  :: atomic { !has_backup -> b_token = token; b_floor = floor; b_commits = commits; has_backup = true }
  :: atomic { has_backup && commits > b_commits ->
       token = b_token; floor = b_floor; commits = b_commits; recovered = false }
  :: atomic { BACK ->
       recovered = true;
#ifndef NO_FLOOR
       most = now * A_TICK;
       floor = (floor > most -> floor : most);
#endif
       anchor = commits; most = 0
     }
     /* Nobody restores twice within a tick. */
     if
     :: atomic { now < TICKS -> now++; in_tick = 0 }
     :: atomic { now == TICKS -> break }
     fi
  :: atomic { now < TICKS -> now++; in_tick = 0 }
  :: break
  od
}

init { atomic { run client(); run operator() } }
