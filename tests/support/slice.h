// How much of a large test is done: a slice in `make test`, more when a variable of the environment
// asks for it.
#pragma once

namespace stint::test {

// The number in the variable; without one, or with something else in it: `slice`.
int asked(const char* variable, int slice);

// How many plays or rounds: STINT_PLAYS.
inline int plays(int slice) { return asked("STINT_PLAYS", slice); }

}  // namespace stint::test
