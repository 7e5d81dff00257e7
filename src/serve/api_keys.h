// Who may call.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// A key, and what its requests hold at the moment.
class ApiKey {
 public:
  ApiKey(std::string secret, std::string name, int n_seats)
      : n_seats(n_seats), name(std::move(name)), secret_(std::move(secret)) {}

  /// -1: unlimited. Otherwise so many requests of the key get in although the queue is full, and
  /// so many at once have priority.
  const int n_seats;
  const std::string name;  // for the books; the secret is nowhere shown

  std::atomic<int> n_open = 0, n_priority = 0;

  /// Takes the same time wherever the two differ.
  bool is(std::string_view secret) const;

 private:
  std::string secret_;
};

class ApiKeys {
 public:
  /// Nobody needs a key.
  ApiKeys() = default;
  /// A key per line: SECRET [name=NAME] [seats=N]; empty lines do not count. `what` (a file name)
  /// starts every error. Throws kInvalidInput, also if there is no key.
  ApiKeys(const std::string& text, const std::string& what);

  bool required() const { return !keys_.empty(); }
  /// Whose header "Bearer SECRET" it is; nullptr: nobody's.
  ApiKey* find(const std::string& authorization) const;

 private:
  std::vector<std::unique_ptr<ApiKey>> keys_;
};

/// One more of `count`, unless there are `limit` already (-1: any number); given back when the
/// last copy goes. Empty: there was no room. `count` must outlive it.
std::shared_ptr<void> take_seat(std::atomic<int>& count, int limit);
/// Holds both.
std::shared_ptr<void> join_seats(std::shared_ptr<void> one, std::shared_ptr<void> other);

}  // namespace sluice
