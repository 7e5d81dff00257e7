#include <chrono>
#include <ctime>

#include "text/jinja_objects.h"

namespace sluice::jinja {
namespace {

Value global_range(Runtime&, const Value&, const Bound& arguments) {
  const auto& values = arguments.all->positional;
  if (values.empty() || values.size() > 3 || !arguments.all->named.empty()) {
    fail("range() takes one to three numbers");
  }
  const int64_t first = to_int64(values[0]);
  if (values.size() == 1) return ObjectPtr(std::make_shared<Range>(0, first, 1));
  return ObjectPtr(std::make_shared<Range>(first, to_int64(values[1]),
                                           values.size() == 3 ? to_int64(values[2]) : 1));
}

/// dict(mapping or pairs, **named)
std::vector<std::pair<Value, Value>> dict_entries(const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1) fail("dict expected at most 1 argument");
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (const Dict* dict = from.dict()) {
      entries = dict->entries;
    } else {
      const SequencePtr pairs = iterate(from);
      for (const Value& pair : pairs->items) {
        const SequencePtr parts = iterate(pair);
        if (parts->items.size() != 2) fail("dict() needs pairs of key and value");
        entries.emplace_back(parts->items[0], parts->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) entries.emplace_back(name, value);
  return entries;
}

Value global_dict(Runtime&, const Value&, const Bound& arguments) {
  return Value::dict(dict_entries(*arguments.all));
}

Value global_namespace(Runtime& runtime, const Value&, const Bound& arguments) {
  const Value initial = Value::dict(dict_entries(*arguments.all));
  std::vector<std::pair<StringPtr, Value>> attributes;
  for (const auto& [key, value] : initial.dict()->entries) {
    if (!key.string()) fail("names of attributes must be strings");
    attributes.emplace_back(key.shared_string(), value);
  }
  auto ns = std::make_shared<Namespace>(std::move(attributes));
  runtime.keep(ns);
  return ObjectPtr(std::move(ns));
}

Value global_cycler(Runtime&, const Value&, const Bound& arguments) {
  if (arguments.all->positional.empty()) fail("at least one item has to be provided");
  return ObjectPtr(std::make_shared<Cycler>(arguments.all->positional));
}

Value global_joiner(Runtime&, const Value&, const Bound& arguments) {
  return ObjectPtr(std::make_shared<Joiner>(arguments.slot[0] ? arguments[0] : Value(", ")));
}

Value global_raise(Runtime&, const Value&, const Bound& arguments) {
  fail("{}", to_text(arguments[0]));
}

int digits(std::string_view text, size_t begin, size_t n) {
  int value = 0;
  for (size_t i = begin; i < begin + n; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') {
      fail("now: expected YYYY-MM-DDTHH:MM:SS, got '{}'", text);
    }
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

std::tm local_time(const std::string& now) {
  std::tm time{};
  if (now.empty()) {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &time);
    return time;
  }
  time.tm_year = digits(now, 0, 4) - 1900;
  time.tm_mon = digits(now, 5, 2) - 1;
  time.tm_mday = digits(now, 8, 2);
  if (now.size() > 10) {
    time.tm_hour = digits(now, 11, 2);
    time.tm_min = digits(now, 14, 2);
    time.tm_sec = now.size() > 16 ? digits(now, 17, 2) : 0;
  }
  const std::tm given = time;
  timegm(&time);  // fills in the days of the week and of the year
  if (time.tm_mday != given.tm_mday || time.tm_mon != given.tm_mon ||
      time.tm_hour != given.tm_hour || time.tm_min != given.tm_min) {
    fail("now: '{}' is no date and time", now);
  }
  return time;
}

Value global_strftime_now(Runtime& runtime, const Value&, const Bound& arguments) {
  std::string format;
  const std::string given = arguments.text(0, "");
  if (given.size() > 10000 || given.find('\0') != given.npos) fail("invalid time format");
  for (size_t i = 0; i < given.size(); ++i) {
    const char next = i + 1 < given.size() ? given[i + 1] : '\0';
    if (given[i] != '%' || next == '\0') {
      format += given[i];
    } else if (next == 'f') {  // microseconds; the time zone of a naive time is empty
      format += "000000";
      ++i;
    } else if (next == 'z' || next == 'Z') {
      ++i;
    } else {
      format += '%';
      format += next;
      ++i;
    }
  }
  const std::tm time = local_time(runtime.now());
  // A directive may ask for any width ("%500000000d"); what does not fit comes back empty.
  std::string out(format.size() * 40 + 64, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &time));
  return out;
}

constexpr Builtin kGlobals[] = {
    {"range", "*", global_range},
    {"dict", "*", global_dict},
    {"namespace", "*", global_namespace},
    {"cycler", "*", global_cycler},
    {"joiner", "sep?", global_joiner},
    {"raise_exception", "message", global_raise},
    {"strftime_now", "format", global_strftime_now},
};

}  // namespace

std::span<const Builtin> globals() { return kGlobals; }

}  // namespace sluice::jinja
