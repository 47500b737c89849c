/* One resource, its store, one target with an atomic guard, and holders that are paused anywhere, walk away and come
   back. What each process stands for, and where its code is: README.md. Variants that must fail:
     NO_SEAL          a new holder does not seal: its first write raises the fence
     NO_FENCE         the target compares nothing
     RENEW_ANY_TIME   a renewal is committed without asking whether the timer still runs */

#ifndef TOKENS
#define TOKENS 4
#endif

/* own/R and alive/R. */
byte token = 0;               /* newest issued; each grant is a new version of own/R */
bool alive = false;           /* the timer runs */

/* The target. */
byte fence = 0;
bool content = 0;             /* which of two updates was the last: enough to see that one was lost */

/* What was really so, for the assertions alone. */
bool ended[TOKENS + 1];       /* released, or its timer fired */
byte highest = 0;             /* accepted at, or sealed, the target */
byte last_accepted = 0;

inline raise_highest(t) { if :: t > highest -> highest = t :: else fi }

proctype holder() {
  byte mine = 0;              /* the token, as long as it is worked with */
  bool seen = 0;              /* what was read at the target */
  bool has_read = false;
  do
  /* acquire: one commit, on the version that was read (a conflict changes nothing: here it is not tried). */
  :: atomic { mine == 0 && !alive && token < TOKENS ->
       token++;
       assert(!ended[token]);                /* no grant of one token twice   G1 */
       assert(token > highest);              /* tokens grow                   G1 */
       if :: token > 1 -> ended[token - 1] = true :: else fi;
       alive = true;
       mine = token
     }
#ifndef NO_SEAL
     /* A token above the fence needs a fresh read of the store; then compare and raise are one step. */
     if
     :: atomic { token > mine -> mine = 0; goto done }
     :: atomic { token == mine -> skip }
     fi;
     if
     :: atomic { mine < fence -> mine = 0; goto done }
     :: atomic { mine >= fence -> fence = mine; raise_highest(mine) }
     fi;
#endif
done:
     has_read = false
  :: atomic { mine != 0 -> seen = content; has_read = true }
  :: atomic { mine != 0 && has_read ->
       if
#ifdef NO_FENCE
       :: true ->
#else
       :: mine < fence -> mine = 0
       :: mine >= fence -> fence = mine;
#endif
          assert(mine >= highest);           /* nothing stale lands           G5 */
          assert(mine >= last_accepted);     /* accepted tokens never go back */
          assert(content == seen);           /* no update is lost */
          raise_highest(mine); last_accepted = mine;
          content = !content; seen = content
       fi
     }
#ifdef RENEW_ANY_TIME
  :: atomic { mine != 0 && mine == token ->
#else
  :: atomic { mine != 0 && mine == token && alive ->
#endif
       assert(!ended[mine]);                 /* never revives                 G3 */
       alive = true
     }
  :: atomic { mine != 0 && mine == token && alive -> alive = false; ended[mine] = true; mine = 0 }
  :: atomic { mine != 0 -> mine = 0 }        /* walks away: the lease runs out */
  :: break
  od
}

/* Expiry at any moment: the holders know nothing of time. */
proctype timer() {
end:
  do
  :: atomic { alive -> alive = false; ended[token] = true }
  od
}

init { atomic { run timer(); run holder(); run holder(); run holder() } }
