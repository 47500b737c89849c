#include "store/dir/state.h"

#include "store/append_key.h"

namespace stint::store::dir {
namespace {

std::string prefix_of(const std::string& key) {
  return key.size() > kAppendDigits ? key.substr(0, key.size() - kAppendDigits) : std::string();
}

// Several sorted sources as one: the foremost key, as its newest source has it.
class Merged {
 public:
  explicit Merged(const Tables& newest_first) {
    for (const auto& table : newest_first) cursors_.emplace_back(table);
  }
  Status seek(std::string_view key, bool backwards) {
    for (Cursor& cursor : cursors_) {
      if (auto ok = cursor.seek(key, backwards); !ok) return ok;
    }
    return {};
  }
  // The newest cursor that stands at the foremost key; null: none is left.
  const Cursor* first(bool backwards) const {
    const Cursor* best = nullptr;
    for (const Cursor& cursor : cursors_) {
      if (!cursor.valid()) continue;
      if (best == nullptr || (backwards ? cursor.key() > best->key() : cursor.key() < best->key()))
        best = &cursor;
    }
    return best;
  }
  // Moves every cursor that stands at `key`.
  Status pass(std::string_view key, bool backwards) {
    for (Cursor& cursor : cursors_) {
      if (!cursor.valid() || cursor.key() != key) continue;
      if (auto ok = cursor.move(backwards); !ok) return ok;
    }
    return {};
  }

 private:
  std::vector<Cursor> cursors_;
};

}  // namespace

Result<Slot> State::look(std::string_view key) const {
  const auto found = overlay_.find(key);
  if (found != overlay_.end()) return found->second.slot;
  for (const auto& table : tables_) {
    auto slot = table->look(key);
    if (!slot) return slot.error();
    if (*slot) return std::move(**slot);
  }
  return Slot();
}

Status State::scan(const Store::ScanRange& range, const Visit& visit) const {
  // Everything that begins with the prefix stands below the prefix with its highest successor.
  const std::string end = range.prefix + "\xFF";
  const bool back = range.backwards;
  const std::string from = !back                 ? std::max(range.prefix, range.after)
                           : range.after.empty() ? end
                                                 : std::min(range.after, end);
  Merged merged(tables_);
  if (auto ok = merged.seek(from, back); !ok) return ok;
  auto over = overlay_.lower_bound(from);
  std::size_t found = 0;
  const auto has_over = [&] { return back ? over != overlay_.begin() : over != overlay_.end(); };
  while (found < range.limit) {
    const Cursor* cursor = merged.first(back);
    const Overlay::value_type* newer = nullptr;
    if (has_over()) newer = back ? &*std::prev(over) : &*over;
    if (cursor == nullptr && newer == nullptr) return {};
    const bool take_newer =
        newer != nullptr && (cursor == nullptr || (back ? newer->first >= cursor->key()
                                                        : newer->first <= cursor->key()));
    const std::string key(take_newer ? std::string_view(newer->first) : cursor->key());
    if (back ? key < range.prefix : key >= end) return {};
    Result<Slot> slot = take_newer ? Result<Slot>(newer->second.slot) : cursor->slot();
    if (!slot) return slot.error();
    if (*slot && (back || key != range.after)) {
      visit(key, **slot);
      ++found;
    }
    if (auto ok = merged.pass(key, back); !ok) return ok;
    if (take_newer) back ? --over : ++over;
  }
  return {};
}

State::Undo State::apply(const std::vector<Change>& changes, Number number) {
  Undo undo;
  undo.appended = base_.appended;
  for (const Change& change : changes) {
    const auto found = overlay_.find(change.key);
    undo.before.emplace_back(
        change.key, found == overlay_.end() ? std::nullopt : std::optional<Changed>(found->second));
    if (change.slot && change.slot->appended) ++base_.appended[prefix_of(change.key)];
    if (!change.slot && change.was_appended) {
      std::uint64_t& count = base_.appended[prefix_of(change.key)];
      if (count > 0) --count;
    }
    overlay_.insert_or_assign(change.key, Changed{change.slot, number});
  }
  return undo;
}

void State::take_back(Undo undo) {
  base_.appended = std::move(undo.appended);
  for (auto at = undo.before.rbegin(); at != undo.before.rend(); ++at) {
    if (at->second) {
      overlay_.insert_or_assign(at->first, std::move(*at->second));
    } else {
      overlay_.erase(at->first);
    }
  }
}

void State::adopt(const Base& base, Tables tables) {
  auto appended = std::move(base_.appended);
  base_ = base;
  base_.appended = std::move(appended);  // of the present number, not of the base's
  tables_ = std::move(tables);
  std::erase_if(overlay_, [&](const auto& one) { return one.second.number <= base.number; });
}

Status merge(const Tables& newest_first,
             const std::function<Status(std::string_view, const Slot&)>& visit) {
  Merged merged(newest_first);
  if (auto ok = merged.seek("", false); !ok) return ok;
  while (const Cursor* cursor = merged.first(false)) {
    const std::string key(cursor->key());
    auto slot = cursor->slot();
    if (!slot) return slot.error();
    if (auto ok = visit(key, *slot); !ok) return ok;
    if (auto ok = merged.pass(key, false); !ok) return ok;
  }
  return {};
}

}  // namespace stint::store::dir
