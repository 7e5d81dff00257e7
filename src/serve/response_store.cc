#include "serve/response_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <utility>
#include <vector>

#include "base/error.h"
#include "serve/openai.h"

namespace sluice {
namespace {

constexpr int64_t kMaxMemory = 256 << 20;
constexpr int64_t kMaxAge = 30 * 24 * 3600;  // seconds
constexpr size_t kMaxChain = 10'000;
constexpr size_t kMaxHistory = 64 << 20;  // bytes
constexpr auto kSyncEvery = std::chrono::seconds(1);
constexpr auto kTidyEvery = std::chrono::hours(1);

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS response ("
    "  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, previous TEXT,"
    "  created INTEGER NOT NULL, ended INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    "  resource TEXT NOT NULL, input TEXT NOT NULL, events TEXT NOT NULL,"
    "  owner TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE IF NOT EXISTS response_item ("
    "  owner TEXT NOT NULL, id TEXT NOT NULL, response TEXT NOT NULL"
    "    REFERENCES response (id) ON DELETE CASCADE, PRIMARY KEY (owner, id)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS response_item_response ON response_item (response);";

/// Older files know of no owners: what they keep belongs to no key.
constexpr const char* kAddOwners =
    "ALTER TABLE response ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE response_item RENAME TO unowned_item;"
    "DROP INDEX response_item_response;";
constexpr const char* kMoveItems =
    "INSERT INTO response_item SELECT '', id, response FROM unowned_item;"
    "DROP TABLE unowned_item;";

OrderedJson parse(const std::string& text) { return OrderedJson::parse(text); }

/// Whether a table has a column.
bool has_column(const Database& database, const char* table, const char* column) {
  Statement select(database, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
  select.bind(0, std::string_view(table));
  select.bind(1, std::string_view(column));
  return select.step();
}

void index_items(const Database& database, const OrderedJson& items, const ResponseKey& response) {
  Statement insert(database, "INSERT OR REPLACE INTO response_item VALUES (?, ?, ?)");
  for (const OrderedJson& item : items) {
    insert.bind(0, response.owner);
    insert.bind(1, item["id"].get_ref<const std::string&>());
    insert.bind(2, response.id);
    insert.step();
    insert.reset();
  }
}

/// `id` is what was asked for, or a response before it.
ApiError no_previous(const std::string& id) {
  return ApiError(400, fmt::format("Previous response with id '{}' not found.", id.substr(0, 100)),
                  "previous_response_id", "previous_response_not_found");
}

}  // namespace

ResponseStore::ResponseStore(const std::string& path)
    : in_memory_(path.empty()), database_(in_memory_ ? ":memory:" : path) {
  create_tables();
  fail_unfinished();
  tidy();
  thread_ = std::thread([this] { run(); });
}

void ResponseStore::create_tables() {
  database_.run("PRAGMA synchronous = NORMAL");
  Transaction transaction(database_);
  const bool unowned =
      has_column(database_, "response", "id") && !has_column(database_, "response", "owner");
  if (unowned) database_.run(kAddOwners);
  database_.run(kSchema);
  if (unowned) database_.run(kMoveItems);
  transaction.commit();
}

void ResponseStore::close() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ResponseStore::post(Task task, std::function<void()> kept) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    tasks_.push_back([task = std::move(task), kept = std::move(kept)] {
      try {
        task();
      } catch (const Error& error) {
        // The answer is worth more than its copy.
        fmt::print(stderr, "sluice: note: a response is not stored: {}\n", error.what());
      }
      if (kept) kept();
    });
  }
  wake_.notify_one();
}

template <typename Result>
Result ResponseStore::wait_for(std::function<Result()> task) {
  const auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> result = promise->get_future();
  post([task = std::move(task), promise] {
    try {
      promise->set_value(task());
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  return result.get();  // a store that was closed breaks the promise
}

void ResponseStore::run() {
  auto next_tidy = std::chrono::steady_clock::now() + kTidyEvery;
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool woken =
        wake_.wait_for(lock, kSyncEvery, [this] { return stop_ || !tasks_.empty(); });
    if (!woken || tasks_.empty()) {
      const bool stop = stop_;
      lock.unlock();
      if (std::exchange(written_, false) && !in_memory_) {
        post([this] { database_.run("PRAGMA wal_checkpoint(PASSIVE)"); });
      }
      if (std::chrono::steady_clock::now() > next_tidy) {
        next_tidy += kTidyEvery;
        post([this] { tidy(); });
      }
      lock.lock();
      if (stop) return;
      continue;
    }
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

void ResponseStore::begin(std::string owner, OrderedJson resource, OrderedJson input,
                          std::function<void()> kept) {
  post([this, owner = std::move(owner), resource = std::move(resource),
        input = std::move(input)] { write_begin(owner, resource, input); },
       std::move(kept));
}

void ResponseStore::end(OrderedJson resource, std::string events, std::function<void()> kept) {
  post([this, resource = std::move(resource),
        events = std::move(events)] { write_end(resource, events); },
       std::move(kept));
}

void ResponseStore::write_begin(const std::string& owner, const OrderedJson& resource,
                                const OrderedJson& input) {
  const std::string id = resource["id"], text = dump(resource), items = dump(input);
  const int64_t n_bytes = int64_t(text.size() + items.size());
  Transaction transaction(database_);
  Statement insert(database_, "INSERT INTO response VALUES (NULL, ?, ?, ?, 0, ?, ?, ?, '', ?)");
  insert.bind(0, id);
  if (resource["previous_response_id"].is_string()) {
    insert.bind(1, resource["previous_response_id"].get_ref<const std::string&>());
  } else {
    insert.bind_null(1);
  }
  insert.bind(2, resource["created_at"].get<int64_t>());
  insert.bind(3, n_bytes);
  insert.bind(4, text);
  insert.bind(5, items);
  insert.bind(6, owner);
  insert.step();
  index_items(database_, input, {owner, id});
  transaction.commit();
  written_ = true;
  n_bytes_ += n_bytes;
  drop_old();
}

void ResponseStore::write_end(const OrderedJson& resource, const std::string& events) {
  const std::string id = resource["id"], text = dump(resource);
  const int64_t n_bytes = int64_t(text.size() + events.size());
  Transaction transaction(database_);
  Statement update(database_,
                   "UPDATE response SET ended = 1, bytes = bytes + ?, resource = ?, events = ?"
                   " WHERE id = ? RETURNING owner");
  update.bind(0, n_bytes);
  update.bind(1, text);
  update.bind(2, events);
  update.bind(3, id);
  if (!update.step()) return;  // removed
  const std::string owner = update.text(0);
  while (update.step()) {
  }
  index_items(database_, resource["output"], {owner, id});
  transaction.commit();
  written_ = true;
  n_bytes_ += n_bytes;
  drop_old();
}

std::optional<StoredResponse> ResponseStore::read(const ResponseKey& key) {
  Statement select(database_,
                   "SELECT resource, input, events FROM response WHERE id = ? AND owner = ?");
  select.bind(0, key.id);
  select.bind(1, key.owner);
  if (!select.step()) return std::nullopt;
  return StoredResponse{parse(select.text(0)), parse(select.text(1)), select.text(2)};
}

bool ResponseStore::erase(const ResponseKey& key) {
  Statement remove(database_, "DELETE FROM response WHERE id = ? AND owner = ? RETURNING bytes");
  remove.bind(0, key.id);
  remove.bind(1, key.owner);
  if (!remove.step()) return false;
  n_bytes_ -= remove.integer(0);
  while (remove.step()) {
  }
  written_ = true;
  return true;
}

std::optional<StoredResponse> ResponseStore::find(const ResponseKey& key) {
  return wait_for<std::optional<StoredResponse>>([this, key] { return read(key); });
}

bool ResponseStore::remove(const ResponseKey& key) {
  return wait_for<bool>([this, key] { return erase(key); });
}

OrderedJson ResponseStore::history(const ResponseKey& key) {
  return wait_for<OrderedJson>([this, key] {
    Statement select(database_,
                     "SELECT previous, input, resource, bytes FROM response"
                     " WHERE id = ? AND owner = ?");
    std::vector<OrderedJson> turns;  // the newest first
    size_t n_bytes = 0;
    for (std::string next = key.id; !next.empty();) {
      select.bind(0, next);
      select.bind(1, key.owner);
      if (!select.step()) throw no_previous(next);
      n_bytes += size_t(select.integer(3));
      if (turns.size() >= kMaxChain || n_bytes > kMaxHistory) {
        throw ApiError(400, "The conversation is too long to go on with.", "previous_response_id",
                       "previous_response_too_long");
      }
      OrderedJson items = parse(select.text(1));
      OrderedJson resource = parse(select.text(2));
      for (OrderedJson& item : resource["output"]) items.push_back(std::move(item));
      turns.push_back(std::move(items));
      next = select.is_null(0) ? "" : select.text(0);
      select.reset();
    }
    OrderedJson all = OrderedJson::array();
    for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) {
      for (OrderedJson& item : *turn) all.push_back(std::move(item));
    }
    return all;
  });
}

std::optional<OrderedJson> ResponseStore::find_item(const ResponseKey& item) {
  return wait_for<std::optional<OrderedJson>>([this, key = item]() -> std::optional<OrderedJson> {
    Statement select(database_, "SELECT response FROM response_item WHERE owner = ? AND id = ?");
    select.bind(0, key.owner);
    select.bind(1, key.id);
    if (!select.step()) return std::nullopt;
    const auto response = read({key.owner, select.text(0)});
    if (!response) return std::nullopt;
    for (const OrderedJson* items : {&response->input, &response->resource["output"]}) {
      for (const OrderedJson& item : *items) {
        if (item["id"] == key.id) return item;
      }
    }
    return std::nullopt;
  });
}

void ResponseStore::fail_unfinished() {
  std::vector<OrderedJson> unfinished;
  {
    Statement select(database_, "SELECT resource FROM response WHERE ended = 0");
    while (select.step()) unfinished.push_back(parse(select.text(0)));
  }
  for (OrderedJson& resource : unfinished) {
    resource["status"] = "failed";
    resource["error"] = {{"code", "server_error"},
                         {"message", "The server was stopped while it made this response."}};
    write_end(resource, "");
  }
}

/// Makes room in memory.
void ResponseStore::drop_old() {
  while (in_memory_ && n_bytes_ > kMaxMemory) {
    ResponseKey key;
    {
      Statement oldest(database_, "SELECT owner, id FROM response ORDER BY number LIMIT 1");
      if (!oldest.step()) return;
      key = {oldest.text(0), oldest.text(1)};
    }
    erase(key);
  }
}

void ResponseStore::tidy() {
  Statement remove(database_, "DELETE FROM response WHERE created < ?");
  remove.bind(0, unix_seconds() - kMaxAge);
  remove.step();
  Statement sum(database_, "SELECT coalesce(sum(bytes), 0) FROM response");
  sum.step();
  n_bytes_ = sum.integer(0);
}

}  // namespace sluice
