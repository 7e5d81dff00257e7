// Responses that outlive their answers, in SQLite.
#pragma once

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/json.h"
#include "serve/sqlite.h"

namespace sluice {

/// Which response: those of one owner (the name of an API key; empty where nobody needs a key) do
/// not exist for others.
struct ResponseKey {
  std::string owner, id;
  auto operator<=>(const ResponseKey&) const = default;
};

struct StoredResponse {
  OrderedJson resource;
  OrderedJson input;   // the items of its own request
  std::string events;  // of a background response that has ended: one JSON object a line
};

/// All SQL runs on a thread of its own, in the order of the calls. What is written survives the
/// end of the process at once, and a power failure after at most a second.
class ResponseStore {
 public:
  /// `path` empty: in memory, where the oldest responses go beyond 256 MiB. A file keeps them for
  /// 30 days. Responses that a former process left unfinished are `failed`. Throws kIo.
  explicit ResponseStore(const std::string& path);
  ~ResponseStore() { close(); }
  ResponseStore(const ResponseStore&) = delete;
  ResponseStore& operator=(const ResponseStore&) = delete;

  /// A response that begins. From any thread; `kept` (may be empty) is called on the store's.
  void begin(std::string owner, OrderedJson resource, OrderedJson input,
             std::function<void()> kept);
  /// What it has become. A response that was removed meanwhile stays so.
  void end(OrderedJson resource, std::string events, std::function<void()> kept);

  // These wait for the store's thread and throw kIo:

  std::optional<StoredResponse> find(const ResponseKey& key);
  /// False: there is none.
  bool remove(const ResponseKey& key);
  /// The items of the conversation up to and with a response. Throws ApiError
  /// (previous_response_not_found) that names the part of it that is missing.
  OrderedJson history(const ResponseKey& key);
  /// `item`: its id, of an item in one of its owner's responses.
  std::optional<OrderedJson> find_item(const ResponseKey& item);

  /// Finishes what was called for. What comes later is dropped, without `kept`.
  void close();

 private:
  using Task = std::function<void()>;

  void run();
  void post(Task task, std::function<void()> kept = {});
  template <typename Result>
  Result wait_for(std::function<Result()> task);
  void write_begin(const std::string& owner, const OrderedJson& resource, const OrderedJson& input);
  void write_end(const OrderedJson& resource, const std::string& events);
  bool erase(const ResponseKey& key);
  std::optional<StoredResponse> read(const ResponseKey& key);
  void create_tables();
  void fail_unfinished();
  void drop_old();
  void tidy();

  const bool in_memory_;
  Database database_;
  int64_t n_bytes_ = 0;  // of all responses
  bool written_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace sluice
