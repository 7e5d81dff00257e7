// Who used how much: every request that was computed, once, in SQLite.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "serve/generation.h"
#include "serve/price.h"
#include "serve/sqlite.h"

namespace sluice {

struct LedgerEntry {
  std::string id;        // unique; an entry that is written again changes nothing
  int64_t ended_ms = 0;  // since 1970
  std::string key;       // name of the caller's key; empty if none was needed
  std::string model;     // or tier, as in the answer
  std::string service_tier, endpoint;
  Usage usage;
  double cost = 0;
};

/// Writes on a thread of its own: what is added is on the disk within a commit's time, and that is
/// what a crash can lose. While the file cannot be written, up to 100,000 entries wait.
class Ledger {
 public:
  /// Throws kIo.
  explicit Ledger(const std::string& path);
  /// Writes what waits.
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// From any thread.
  void add(LedgerEntry entry);
  /// Adds `entry` with the usage that it is called with and its cost, unless nothing was used.
  std::function<void(const Usage&)> account(LedgerEntry entry, std::optional<Price> price);

 private:
  void run();
  bool write(const std::vector<LedgerEntry>& entries);

  Database database_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<LedgerEntry> waiting_;
  bool stop_ = false;
  std::thread thread_;
};

/// Sums from the ledger in `path` by "key", "model", "tier" or "day" (UTC), as an array of objects
/// {by, requests, prompt_tokens, cached_tokens, completion_tokens, cost}, in order of the first.
/// Throws kIo.
OrderedJson usage_by(const std::string& path, const std::string& by);

}  // namespace sluice
