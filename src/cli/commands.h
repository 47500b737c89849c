// Every command's table; one file each.
#pragma once

#include "cli/command.h"

namespace stint::cli {

extern const Command kRun;
extern const Command kAcquire;
extern const Command kRenew;
extern const Command kRelease;
extern const Command kCheck;
extern const Command kTransfer;
extern const Command kRevoke;
extern const Command kSeal;
extern const Command kAdmit;
extern const Command kGuard;
extern const Command kLs;
extern const Command kShow;
extern const Command kHistory;
extern const Command kEvents;
extern const Command kWatch;
extern const Command kTop;
extern const Command kProgress;
extern const Command kWrite;
extern const Command kPublish;
extern const Command kForget;
extern const Command kPush;
extern const Command kCron;
extern const Command kQueue;
extern const Command kWork;
extern const Command kSlots;
extern const Command kExplain;
extern const Command kOnce;
extern const Command kTune;
extern const Command kProxy;
extern const Command kServe;
extern const Command kKey;
extern const Command kConfig;
extern const Command kDoctor;
extern const Command kTorture;
extern const Command kStore;
extern const Command kVersion;
extern const Command kCompletion;
extern const Command kHelp;

}  // namespace stint::cli
