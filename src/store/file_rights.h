// Who may write the files of a store that is made of files: for `stint doctor`.
//
// Who may write them may change every lease without Stint, so others should not; a group that
// shares the store on purpose is nobody else's business.
#pragma once

#include <string>
#include <vector>

#include "store/seam.h"

namespace stint::store {

struct FilePlace {
  std::vector<std::string> own;  // files and folders of the store; one that is missing is no matter
  std::string around = {};       // the folder that they stand in: who may rename there; empty: none
};

// One line, `permissions`.
Finding file_rights(const FilePlace& place);

}  // namespace stint::store
