// Answers that are kept for who asks again, on every store: what was done and what is told of it
// are one commit. A process that dies at any call to the store leaves both or neither, and whoever
// asks again under the same key gets what was told, or has it done now; never twice.
#include <map>

#include "api/queue_wire.h"
#include "api/slots_json.h"
#include "api/wire.h"
#include "base/text.h"
#include "service/key_service.h"
#include "service/once_records.h"
#include "service/queue_service.h"
#include "service/slot_service.h"
#include "tests/conformance/lease_fixture.h"

namespace stint::testing {
namespace {

// Dies at the n-th commit: before it, or after it and before its answer is heard. From then on it
// answers nothing; Deaf: it tells what stands, and commits nothing more.
class DyingStore final : public store::Store {
 public:
  enum class When { Before, After, Deaf };
  DyingStore(store::Store& real, int at, When when) : real_(real), left_(at), when_(when) {}
  bool died() const { return died_; }

  const store::Capabilities& capabilities() const override { return real_.capabilities(); }
  const store::Opening& opening() const override { return real_.opening(); }
  Result<store::Reading> read(const std::vector<std::string>& keys) override {
    if (died_ && when_ != When::Deaf) return gone();
    return real_.read(keys);
  }
  Result<store::Reading> scan(const ScanRange& range) override {
    if (died_ && when_ != When::Deaf) return gone();
    return real_.scan(range);
  }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (died_) return gone();
    died_ = --left_ == 0;
    if (died_ && when_ == When::Before) return Error{Code::UnknownOutcome, "died before"};
    auto done = real_.commit(steps, sync);
    if (died_) return Error{Code::UnknownOutcome, "died after"};
    return done;
  }
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override { return real_.watch(key); }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    return real_.appended(prefix);
  }
  Result<std::uint64_t> revision() override { return real_.revision(); }

 private:
  static Error gone() { return unavailable("this process is dead"); }
  store::Store& real_;
  int left_;
  const When when_;
  bool died_ = false;
};

// The services of one process, for one request.
struct Process {
  Process(store::Store& store, Site& site, Random& random, const service::Life& life,
          const std::optional<api::Once>& once)
      : key(once),
        ledger(store, site.clock(), 100'000),
        leases(store, ledger, life, site.clock(), random, nullptr),
        fences(store, site.clock(), once),
        slots(store, ledger, site.clock(), {}, once),
        keys(store, site.clock(), random, once),
        queue(store, ledger, site.clock(), random) {}
  std::optional<api::Once> key;
  service::Ledger ledger;
  service::LeaseService leases;
  service::FenceService fences;
  service::SlotService slots;
  service::KeyService keys;
  service::QueueService queue;
};

template <class T>
Result<std::string> body(const Result<T>& answer,
                         const std::function<std::string(const T&)>& write) {
  if (!answer) return answer.error();
  return write(*answer);
}

class KeptTest : public LeaseTest {
 protected:
  using Ask = std::function<Result<std::string>(Process&)>;

  Result<std::string> item(const Result<api::ItemAnswer>& answer) {
    if (!answer) return answer.error();
    const auto* done = std::get_if<api::ItemDone>(&*answer);
    if (done == nullptr) return Error{Code::Lost, "lost"};
    api::ItemDone told = *done;
    told.store_time.reset();
    return api::to_json(told);
  }
  Result<std::string> fenced(const Result<api::FenceAnswer>& answer) {
    return body<api::FenceAnswer>(
        answer, [](const api::FenceAnswer& told) { return api::to_json(told, nullptr); });
  }

  // Everything but the kept answers themselves.
  std::map<std::string, std::string> whole() {
    std::map<std::string, std::string> out;
    std::string after;
    while (true) {
      const auto page =
          client_.store->scan({.prefix = "", .after = after, .limit = 500, .backwards = false});
      EXPECT_TRUE(page.has_value());
      for (const store::Entry& entry : page->entries) {
        after = entry.key;
        if (!entry.key.starts_with(service::kAnswerPrefix)) out[entry.key] = entry.value;
      }
      if (page->entries.empty()) return out;
    }
  }

  api::Once new_key() { return {.key = client_.random.id_hex(), .digest = "d"}; }

  // Asks in a process that dies at each commit in turn, and again in one that lives.
  void sweep(std::string_view what, const std::function<Ask(int)>& prepare) {
    service::OnceService answers(*client_.store, site_->clock());
    bool finished = false;
    for (int at = 1; !finished; ++at) {
      ASSERT_LT(at, 20) << what;
      for (const auto when : {DyingStore::When::Before, DyingStore::When::After}) {
        SCOPED_TRACE(std::string(what) + " dies at commit " + std::to_string(at) +
                     (when == DyingStore::When::Before ? ", before it" : ", after it"));
        const Ask ask = prepare(runs_++);
        const auto before = whole();
        const api::Once once = new_key();
        DyingStore dying(*client_.store, at, when);
        Result<std::string> told = unavailable("not asked");
        {
          Process process(dying, *site_, client_.random, life_, once);
          told = ask(process);
        }
        finished = !dying.died();
        const auto kept = answers.find(once).value();
        ASSERT_EQ(kept.before, whole() != before) << "done and told are two";
        if (told) {
          ASSERT_EQ(kept.body, *told);
        }
        if (kept.before) {
          again(ask, once, kept.body);
          continue;
        }
        Process alive(*client_.store, *site_, client_.random, life_, once);
        const auto second = ask(alive);
        ASSERT_TRUE(second.has_value()) << second.error().message;
        ASSERT_EQ(answers.find(once)->body, *second);
        again(ask, once, *second);
      }
    }
    ++swept_;
  }

  // Who does not look first, as the server does, is refused by the commit, and nothing changes.
  void again(const Ask& ask, const api::Once& once, const std::string& first) {
    service::OnceService answers(*client_.store, site_->clock());
    const auto before = whole();
    {
      Process late(*client_.store, *site_, client_.random, life_, once);
      EXPECT_FALSE(ask(late).has_value());
    }
    auto after = whole();
    // That a stale verb was refused is on record.
    std::erase_if(after, [&](const auto& one) {
      return !before.contains(one.first) && one.second.find("refused") != std::string::npos;
    });
    EXPECT_EQ(after, before);
    EXPECT_EQ(answers.find(once)->body, first);
    api::Once other = once;
    other.digest = "another body";
    EXPECT_TRUE(api::is_once_mismatch(answers.find(other).error()));
  }

  core::Offer offer(int run) {
    const Grant got = acquire(name(run));
    core::Offer out;
    out.generation = client_.local.generation();
    out.resource = name(run);
    out.token = got.token();
    return out;
  }
  static api::Act act(int run) {
    api::Act out;
    out.name = name(run);
    out.key = "k";
    out.owner = owner("ann");
    return out;
  }
  static std::string name(int run) { return "r" + std::to_string(run); }
  core::QueueName queue_name(int run) { return core::QueueName::parse("q" + name(run)).value(); }

  api::ItemRef claimed(int run) {
    service::QueueService& queue = queue_;
    api::PutRequest put{.queue = queue_name(run),
                        .payload = "p",
                        .priority = 0,
                        .delay = {},
                        .unique = {},
                        .labels = {},
                        .by = {},
                        .limits = {},
                        .create = true};
    EXPECT_TRUE(queue.put(put).has_value());
    auto got = queue.claim(
        {.queue = put.queue, .owner = owner("w"), .claim = client_.claim(), .ttl = kHour});
    const auto& item = std::get<api::ClaimedItem>(*got).item;
    return {.id = item.id, .epoch = item.item.epoch};
  }
  static core::JobRule rule(int run) {
    core::JobRule out;
    out.name = "job" + std::to_string(run);
    out.schedule = "0 0 1 1 *";
    out.expression = core::parse_cron(out.schedule).value();
    out.digest = core::schedule_digest(out.schedule, "UTC");
    return out;
  }

  const service::Life life_ =
      service::begin_life(*client_.store, client_.random, site_->clock().wall(), nullptr, {})
          .value();
  int runs_ = 0;
  int swept_ = 0;
  service::QueueService queue_{*client_.store, client_.ledger, site_->clock(), client_.random};
  service::SlotService slots_{*client_.store, client_.ledger, site_->clock()};
};

// EVIDENCE-OF: G5 G11
TEST_P(KeptTest, AFencesWordAndWhatItDidAreOneCommit) {
  const auto each =
      [&](std::string_view what,
          const std::function<Result<std::string>(Process&, const core::Offer&, int)>& ask) {
        sweep(what, [&, ask](int run) -> Ask {
          return [&, ask, run, o = offer(run)](Process& process) { return ask(process, o, run); };
        });
      };
  each("admit", [&](Process& p, const core::Offer& o, int run) {
    return fenced(p.fences.admit("t" + name(run), o));
  });
  each("seal", [&](Process& p, const core::Offer& o, int run) {
    return fenced(p.fences.seal("t" + name(run), o));
  });
  each("begin", [&](Process& p, const core::Offer& o, int run) {
    return fenced(p.fences.begin(act(run), o));
  });
  each("remember", [&](Process& p, const core::Offer& o, int) {
    return body<core::Verdict>(p.fences.remember(o, {"file:/t"}), [](const core::Verdict& verdict) {
      return api::to_json({.verdict = verdict, .fence = {}, .owner = {}}, nullptr);
    });
  });
  EXPECT_EQ(swept_, 4);
}

// EVIDENCE-OF: G8 G10
TEST_P(KeptTest, AnItemsVerbAndItsAnswerAreOneCommit) {
  const auto each =
      [&](std::string_view what,
          const std::function<Result<api::ItemAnswer>(Process&, const api::ItemRef&)>& ask) {
        sweep(what, [&, ask](int run) -> Ask {
          return [&, ask, ref = claimed(run)](Process& process) {
            api::ItemRef mine = ref;
            mine.once = process.key;
            return item(ask(process, mine));
          };
        });
      };
  const auto order = [](core::ItemOrder::What what, const api::ItemRef& ref) {
    return core::ItemOrder{.what = what,
                           .expected = ref.epoch,
                           .why = "w",
                           .by = "b",
                           .id = "one",
                           .to = {},
                           .hold = {}};
  };
  each("start", [](Process& p, const api::ItemRef& ref) { return p.queue.start(ref, true); });
  each("checkpoint",
       [](Process& p, const api::ItemRef& ref) { return p.queue.checkpoint(ref, "m", "data"); });
  each("complete", [](Process& p, const api::ItemRef& ref) {
    return p.queue.complete({.ref = ref, .result = "r", .then = {{ref.id.queue(), "next"}}});
  });
  each("fail",
       [](Process& p, const api::ItemRef& ref) { return p.queue.fail(ref, "w", std::nullopt); });
  each("release", [](Process& p, const api::ItemRef& ref) { return p.queue.release(ref); });
  each("park", [&](Process& p, const api::ItemRef& ref) {
    return p.queue.order(ref.id, order(core::ItemOrder::What::Park, ref), ref.once);
  });
  each("cancel", [&](Process& p, const api::ItemRef& ref) {
    return p.queue.order(ref.id, order(core::ItemOrder::What::Cancel, ref), ref.once);
  });
  EXPECT_EQ(swept_, 7);
}

// The first commit is made and not answered, the next one is refused: what was done is seen, and
// that it cannot be kept a second time does not undo it.
TEST_P(KeptTest, AnItemsVerbThatMayHaveBeenDoneStaysUnknown) {
  for (const bool completed : {true, false}) {
    api::ItemRef ref = claimed(runs_++);
    const api::Once once = new_key();
    DyingStore deaf(*client_.store, 1, DyingStore::When::Deaf);
    Process process(deaf, *site_, client_.random, life_, once);
    ref.once = once;
    const auto told = completed ? process.queue.complete({.ref = ref, .result = "r", .then = {}})
                                : process.queue.fail(ref, "w", std::nullopt);
    ASSERT_FALSE(told.has_value());
    EXPECT_EQ(told.error().code, Code::UnknownOutcome) << told.error().message;
  }
}

// EVIDENCE-OF: G9
TEST_P(KeptTest, WhatIsDoneToAJobAndItsAnswerAreOneCommit) {
  sweep("pause", [&](int run) -> Ask {
    return [r = rule(run)](Process& p) -> Result<std::string> {
      if (auto done = p.slots.pause(r, "me"); !done) return done.error();
      return std::string(R"({"paused":true})");
    };
  });
  sweep("add", [&](int run) -> Ask {
    return [r = rule(run)](Process& p) {
      return body<api::SlotAdded>(p.slots.add(r, std::nullopt, "s"),
                                  [](const api::SlotAdded& added) { return api::to_json(added); });
    };
  });
  sweep("start", [&](int run) -> Ask {
    const Grant got = acquire(name(run));
    const auto added = slots_.add(rule(run), std::nullopt, "s").value();
    const api::SlotProof proof{.job = rule(run).name,
                               .at = added.at,
                               .attempt = 1,
                               .scheduler = "s",
                               .owner = owner("ann"),
                               .grip = got.grip};
    EXPECT_EQ(slots_.claim(proof).value(), api::StepAnswer::Done);
    return [proof](Process& p) -> Result<std::string> {
      auto done = p.slots.start(proof);
      if (!done) return done.error();
      return std::string(R"({"done":true})");
    };
  });
  EXPECT_EQ(swept_, 3);
}

TEST_P(KeptTest, AKeyAnEventAForgottenNameAndAQueueAreKeptWithTheirAnswer) {
  sweep("revoke a key", [&](int) -> Ask {
    service::KeyService keys(*client_.store, site_->clock(), client_.random);
    const api::Key made =
        keys.create({.name = "k", .rights = 1, .prefixes = {}, .lasts = {}}, "me")->key;
    return [id = made.id](Process& p) {
      return body<api::Key>(p.keys.revoke(id, "me"),
                            [](const api::Key& key) { return api::to_json(key); });
    };
  });
  sweep("an event", [&](int run) -> Ask {
    return [run](Process& p) -> Result<std::string> {
      api::Event event;
      event.kind = "note";
      event.resource = name(run);
      if (auto done = p.ledger.write(event, p.key); !done) return done.error();
      return std::string(R"({"recorded":true})");
    };
  });
  sweep("forget", [&](int run) -> Ask {
    const Grant got = acquire(name(run));
    EXPECT_TRUE(client_.local.release(got.grip, false).has_value());
    return [run](Process& p) {
      return body<Token>(p.leases.forget(resource(name(run)), p.key), [](const Token& floor) {
        return cat("{\"floor\":", floor.number(), "}");
      });
    };
  });
  sweep("a queue", [&](int run) -> Ask {
    return [config = api::QueueConfig{.name = queue_name(run), .limits = {}}](
               Process& p) -> Result<std::string> {
      if (auto done = p.queue.configure(config, p.key); !done) return done.error();
      return api::to_json(config);
    };
  });
  EXPECT_EQ(swept_, 4);
}

// What is too long for a record is written ahead, and named by the commit.
TEST_P(KeptTest, AnAnswerOfAnyLengthIsKept) {
  service::OnceService answers(*client_.store, site_->clock());
  for (const std::size_t size : {3U, 3800U, 3900U, 9000U, 300'000U}) {
    std::string text;
    while (text.size() < size) text += "\"\u00e4\\ ";
    const std::optional<api::Once> once = new_key();
    const service::Keeper keeper(*client_.store, site_->clock(), once);
    ASSERT_TRUE(keeper.keep([&] { return text; }).has_value());
    EXPECT_EQ(answers.find(*once)->body, text) << size;
    EXPECT_FALSE(keeper.keep([&] { return text; }).has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, KeptTest, ::testing::ValuesIn(stores()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace stint::testing
