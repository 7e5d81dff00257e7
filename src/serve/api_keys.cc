#include "serve/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int kMaxSeats = 1 << 20;

int read_seats(std::string_view text, const std::string& where) {
  int seats = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seats);
  if (error == std::errc() && end == text.data() + text.size() && seats >= 0 &&
      seats <= kMaxSeats) {
    return seats;
  }
  throw Error(ErrorCode::kInvalidInput, "{}: seats: expected a number from 0 to {}, got \"{}\"",
              where, kMaxSeats, text);
}

}  // namespace

bool ApiKey::is(std::string_view secret) const {
  unsigned difference = secret.size() == secret_.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    difference |= unsigned(secret[i] ^ secret_[i % secret_.size()]);
  }
  return difference == 0;
}

ApiKeys::ApiKeys(const std::string& text, const std::string& what) {
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}: line {}", what, ++number);
    std::istringstream words(line);
    std::string secret, name = fmt::format("key-{}", number);
    if (!(words >> secret)) continue;
    int seats = -1;
    for (std::string word; words >> word;) {
      const std::string_view view = word;
      if (view.starts_with("name=") && view.size() > 5) {
        name = view.substr(5);
      } else if (view.starts_with("seats=")) {
        seats = read_seats(view.substr(6), where);
      } else {
        throw Error(ErrorCode::kInvalidInput,
                    "{}: expected name=NAME or seats=N after the key, got \"{}\"", where, word);
      }
    }
    keys_.push_back(std::make_unique<ApiKey>(std::move(secret), std::move(name), seats));
  }
  if (keys_.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected at least one key", what);
  }
}

ApiKey* ApiKeys::find(const std::string& authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  std::string scheme = authorization.substr(0, kScheme.size());
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (scheme != kScheme) return nullptr;
  const std::string_view given = std::string_view(authorization).substr(kScheme.size());
  ApiKey* found = nullptr;
  for (const auto& key : keys_) {
    if (key->is(given)) found = key.get();
  }
  return found;
}

std::shared_ptr<void> take_seat(std::atomic<int>& count, int limit) {
  if (count.fetch_add(1) >= limit && limit >= 0) {
    count.fetch_sub(1);
    return nullptr;
  }
  return {static_cast<void*>(&count), [&count](void*) { count.fetch_sub(1); }};
}

std::shared_ptr<void> join_seats(std::shared_ptr<void> one, std::shared_ptr<void> other) {
  return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
      std::move(one), std::move(other));
}

}  // namespace sluice
