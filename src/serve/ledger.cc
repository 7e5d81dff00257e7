#include "serve/ledger.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

constexpr size_t kMaxWaiting = 100'000;
constexpr auto kRetry = std::chrono::seconds(1);

/// Costs are kept in whole numbers, which add up exactly.
constexpr double kNano = 1e9;

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS usage ("
    "  id TEXT PRIMARY KEY, ended_ms INTEGER NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL,"
    "  service_tier TEXT NOT NULL, endpoint TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,"
    "  cached_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,"
    "  cost_nano INTEGER NOT NULL"
    ") WITHOUT ROWID";

}  // namespace

Ledger::Ledger(const std::string& path) : database_(path) {
  database_.run(kSchema);
  thread_ = std::thread([this] { run(); });
}

Ledger::~Ledger() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Ledger::add(LedgerEntry entry) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMaxWaiting) return;
    waiting_.push_back(std::move(entry));
  }
  wake_.notify_one();
}

std::function<void(const Usage&)> Ledger::account(LedgerEntry entry, std::optional<Price> price) {
  return [this, entry = std::move(entry), price](const Usage& usage) mutable {
    if (usage.prompt_tokens == 0) return;
    entry.ended_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    entry.usage = usage;
    if (price) entry.cost = price->of(usage, entry.service_tier);
    add(std::move(entry));
  };
}

void Ledger::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::vector<LedgerEntry> entries = std::exchange(waiting_, {});
    lock.unlock();
    const bool written = write(entries);
    lock.lock();
    if (written) continue;
    waiting_.insert(waiting_.begin(), std::make_move_iterator(entries.begin()),
                    std::make_move_iterator(entries.end()));
    if (stop_) return;
    wake_.wait_for(lock, kRetry, [this] { return stop_; });
  }
}

/// All in one transaction. False if the file cannot be written now.
bool Ledger::write(const std::vector<LedgerEntry>& entries) {
  try {
    Transaction transaction(database_);
    Statement insert(database_,
                     "INSERT OR IGNORE INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const LedgerEntry& entry : entries) {
      insert.bind(0, entry.id);
      insert.bind(1, entry.ended_ms);
      insert.bind(2, entry.key);
      insert.bind(3, entry.model);
      insert.bind(4, entry.service_tier);
      insert.bind(5, entry.endpoint);
      insert.bind(6, entry.usage.prompt_tokens);
      insert.bind(7, entry.usage.cached_tokens);
      insert.bind(8, entry.usage.completion_tokens);
      insert.bind(9, int64_t(std::llround(entry.cost * kNano)));
      insert.step();
      insert.reset();
    }
    transaction.commit();
    return true;
  } catch (const Error& error) {
    fmt::print(stderr, "sluice: note: usage is not written: {}\n", error.what());
    return false;
  }
}

OrderedJson usage_by(const std::string& path, const std::string& by) {
  const std::string column = by == "tier"  ? "service_tier"
                             : by == "day" ? "date(ended_ms / 1000, 'unixepoch')"
                                           : by;
  const Database database = Database::read_only(path);
  Statement select(database, fmt::format("SELECT {}, count(*), sum(prompt_tokens),"
                                         " sum(cached_tokens), sum(completion_tokens),"
                                         " sum(cost_nano) FROM usage GROUP BY 1 ORDER BY 1",
                                         column));
  OrderedJson rows = OrderedJson::array();
  while (select.step()) {
    rows.push_back({{by, select.text(0)},
                    {"requests", select.integer(1)},
                    {"prompt_tokens", select.integer(2)},
                    {"cached_tokens", select.integer(3)},
                    {"completion_tokens", select.integer(4)},
                    {"cost", double(select.integer(5)) / kNano}});
  }
  return rows;
}

}  // namespace sluice
