// A fence in a git repository: one small object under one ref, and the names of both.
//
//   stint fence 1
//   resource blog-repo
//   generation 9f…        32 hexadecimal digits
//   token 7
//   seq 3                 how many pushes of this token came before
//   claim 51…             the hash of the writer's claim; "-": sealed by order, nobody's yet;
//                         "nobody": sealed by a revocation, nobody's for ever
//   owner host-a-4711     may be empty
//   nonce 3b…             makes each push's object unlike every other: git leaves out a ref whose
//                         object does not change, and with it the comparison (facts: trap 1). G5
//   used KEY DIGEST       only after a write in mode once; KEY in hexadecimal digits
//
// Where the ref is a branch the text is the message of a commit on the empty tree, whose parent is
// the fence before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/names.h"
#include "base/result.h"
#include "core/fence.h"

namespace stint::guard {

struct GitFence {
  core::Fence fence;
  std::uint64_t seq = 0;
  ClaimHash claim;  // empty: sealed by order
  std::string owner;
  std::string nonce;
};

std::string claim_text(const GitFence& fence);
std::string encode(const GitFence& fence);
// Strict: anything that encode() would not have written is unreadable. REQUIRES nothing of `text`.
Result<GitFence> parse_git_fence(std::string_view text);

enum class GitObject { Blob, Commit };

// The raw commit around a fence's text. `parent` empty: the first.
struct FenceCommit {
  std::string tree;
  std::string parent;
  std::int64_t at_s = 0;
};
std::string encode_commit(const FenceCommit& commit, std::string_view text);
// The text inside a raw commit, and its parent.
struct CommitText {
  std::string parent;
  std::string text;
};
Result<CommitText> parse_fence_commit(std::string_view raw);

// The ref of a resource's fence: `prefix` and the name, encoded one-to-one into one valid part of a
// ref name, also on file systems that take capital letters for small ones.
std::string fence_ref(std::string_view prefix, const ResourceName& resource);
// The resource of that ref; empty: it is none of ours, or the name is too long to be had back.
std::optional<ResourceName> resource_of_fence_ref(std::string_view prefix, std::string_view ref);

constexpr std::string_view kFencePrefix = "refs/stint/fence/";
// A fence must stand behind the branches in the order of names: git's file storage puts refs in
// place one after the other, in that order, and a successor could seal as soon as the fence is
// (ADR 0016). G5
Status check_fence_prefix(std::string_view prefix);
// The same for one push. Tags are left out: a push that is not forced only ever makes them.
Status check_fence_order(std::string_view fence, std::string_view branch);
// A branch can hold nothing but commits.
GitObject object_kind(std::string_view ref);

}  // namespace stint::guard
