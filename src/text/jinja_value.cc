#include "text/jinja_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

constexpr size_t kLinearDictSize = 8;

int checked_depth(int deepest_item) {
  if (deepest_item >= kMaxValueDepth) fail("a value is nested deeper than {}", kMaxValueDepth);
  return deepest_item + 1;
}

bool equal_sequences(const Sequence& a, const Sequence& b) {
  if (&a == &b) return true;
  return a.is_list() == b.is_list() && a.items.size() == b.items.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(entry.first);
    return other && equal(entry.second, *other);
  });
}

std::string repr_string(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (c == char32_t(quote) || c == '\\') {
      out += '\\';
      out += char(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (is_printable(c)) {
      append_code_point(out, c);
    } else {
      const auto code = uint32_t(c);
      out += c < 0x100     ? fmt::format("\\x{:02x}", code)
             : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                           : fmt::format("\\U{:08x}", code);
    }
  }
  out += quote;
  return out;
}

void append_repr(std::string& out, const Value& value);

void append_items(std::string& out, const Sequence& sequence) {
  const bool tuple = !sequence.is_list();
  out += tuple ? '(' : '[';
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i) out += ", ";
    append_repr(out, sequence.items[i]);
  }
  if (tuple && sequence.items.size() == 1) out += ',';
  out += tuple ? ')' : ']';
}

void append_entries(std::string& out, const Dict& dict) {
  out += '{';
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i) out += ", ";
    append_repr(out, dict.entries[i].first);
    out += ": ";
    append_repr(out, dict.entries[i].second);
  }
  out += '}';
}

void append_repr(std::string& out, const Value& value) {
  spend(1);
  const Budget::Nesting nesting;
  check_text_size(out.size() < kMaxAliveBytes ? 0 : out.size());
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (const String* s = value.string()) {
    out += s->safety == Safety::kSafe ? fmt::format("Markup({})", repr_string(s->text))
                                      : repr_string(s->text);
  } else if (const Sequence* items = value.sequence()) {
    append_items(out, *items);
  } else if (const Dict* dict = value.dict()) {
    append_entries(out, *dict);
  } else if (const Object* object = value.object()) {
    out += object->repr();
  } else {
    append_text(out, value);
  }
}

}  // namespace

String::String(std::string value, Safety mark)
    : text(std::move(value)),
      n_code_points(count_code_points(text)),
      safety(mark),
      charge(sizeof(String) + text.size()) {}

Sequence::Sequence(std::vector<Value> values, SequenceKind sequence_kind)
    : items(std::move(values)),
      kind(sequence_kind),
      depth(checked_depth(depth_of(items))),
      charge(sizeof(Sequence) + items.size() * sizeof(Value)) {
  spend(1 + items.size() / 2);
}

Dict::Dict(std::vector<std::pair<Value, Value>> pairs)
    : depth(0), charge(sizeof(Dict) + pairs.size() * 4 * sizeof(Value)) {
  for (auto& [key, value] : pairs) {
    const size_t hash = ValueHash()(key);  // also refuses unhashable keys
    (void)hash;
    Value* known = const_cast<Value*>(find(key));
    if (known) {
      *known = std::move(value);
      continue;
    }
    entries.emplace_back(std::move(key), std::move(value));
    if (entries.size() == kLinearDictSize + 1) {
      for (size_t i = 0; i < entries.size(); ++i) index_.emplace(entries[i].first, i);
    } else if (entries.size() > kLinearDictSize) {
      index_.emplace(entries.back().first, entries.size() - 1);
    }
  }
  for (const auto& [key, value] : entries) {
    depth = std::max({depth, depth_of(key), depth_of(value)});
  }
  depth = checked_depth(depth);
}

const Value* Dict::find(const Value& key) const {
  if (const String* s = key.string(); s && index_.empty()) return find_text(s->text);
  if (index_.empty()) {
    for (const auto& [name, value] : entries) {
      if (equal(name, key)) return &value;
    }
    return nullptr;
  }
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::find_text(std::string_view key) const {
  if (!index_.empty()) return find(Value(key));
  for (const auto& [name, value] : entries) {
    const String* s = name.string();
    if (s && s->text == key) return &value;
  }
  return nullptr;
}

size_t ValueHash::operator()(const Value& value) const {
  spend(1);
  if (const String* s = value.string()) return std::hash<std::string>()(s->text);
  if (is_number(value)) return std::hash<double>()(to_double(value));
  if (const Sequence* s = value.sequence(); s && !s->is_list()) {
    size_t hash = s->items.size();
    for (const Value& item : s->items) hash = hash * 1000003 + operator()(item);
    return hash;
  }
  if (value.sequence() || value.dict()) fail("unhashable type: '{}'", type_name(value));
  return value.object() ? std::hash<const void*>()(value.object()) : value.kind();
}

bool ValueEqual::operator()(const Value& a, const Value& b) const { return equal(a, b); }

Value::Value(std::string text, Safety safety)
    : data_(StringPtr(std::make_shared<String>(std::move(text), safety))) {}

Value Value::list(std::vector<Value> items) {
  return SequencePtr(std::make_shared<Sequence>(std::move(items), SequenceKind::kList));
}

Value Value::tuple(std::vector<Value> items) {
  return SequencePtr(std::make_shared<Sequence>(std::move(items), SequenceKind::kTuple));
}

Value Value::dict(std::vector<std::pair<Value, Value>> entries) {
  return DictPtr(std::make_shared<Dict>(std::move(entries)));
}

const String* Value::string() const {
  const auto* p = std::get_if<StringPtr>(&data_);
  return p ? p->get() : nullptr;
}

const Sequence* Value::sequence() const {
  const auto* p = std::get_if<SequencePtr>(&data_);
  return p ? p->get() : nullptr;
}

const Dict* Value::dict() const {
  const auto* p = std::get_if<DictPtr>(&data_);
  return p ? p->get() : nullptr;
}

Object* Value::object() const {
  const auto* p = std::get_if<ObjectPtr>(&data_);
  return p ? p->get() : nullptr;
}

StringPtr Value::shared_string() const { return std::get<StringPtr>(data_); }
SequencePtr Value::shared_sequence() const { return std::get<SequencePtr>(data_); }
ObjectPtr Value::shared_object() const { return std::get<ObjectPtr>(data_); }
DictPtr Value::shared_dict() const { return std::get<DictPtr>(data_); }

const void* Value::identity() const {
  if (string()) return string();
  if (sequence()) return sequence();
  if (dict()) return dict();
  return object();
}

Object::Object(int item_depth) : depth(checked_depth(item_depth)), charge(2 * sizeof(Object)) {}

int depth_of(const Value& value) {
  if (const Sequence* s = value.sequence()) return s->depth;
  if (const Dict* d = value.dict()) return d->depth;
  if (const Object* o = value.object()) return o->depth;
  return 0;
}

int depth_of(const std::vector<Value>& values) {
  int depth = 0;
  for (const Value& value : values) depth = std::max(depth, depth_of(value));
  return depth;
}

std::string Object::repr() const { return fmt::format("<{} object>", type_name()); }

const char* type_name(const Value& value) {
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool", "int", "float"};
  if (value.kind() < std::size(kNames)) return kNames[value.kind()];
  if (const String* s = value.string()) return s->safety == Safety::kSafe ? "Markup" : "str";
  if (const Sequence* s = value.sequence()) return s->is_list() ? "list" : "tuple";
  return value.dict() ? "dict" : value.object()->type_name();
}

void fail_undefined(const Undefined& undefined) {
  const std::string_view name = undefined.name ? std::string_view(undefined.name->text) : "value";
  if (!undefined.owner) fail("'{}' is undefined", name);
  if (!*undefined.owner) fail("{}", name);
  fail("'{} object' has no attribute '{}'", undefined.owner, name);
}

bool truthy(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const bool* b = value.boolean()) return *b;
  if (const Int* i = value.integer()) return *i != 0;
  if (const double* d = value.real()) return *d != 0;
  if (const String* s = value.string()) return !s->text.empty();
  if (const Sequence* s = value.sequence()) return !s->items.empty();
  if (const Dict* d = value.dict()) return !d->entries.empty();
  return value.object()->truthy();
}

bool equal(const Value& a, const Value& b) {
  spend(1);
  if (is_number(a) && is_number(b)) {
    if (a.real() || b.real()) return to_double(a) == to_double(b);
    return to_integer(a) == to_integer(b);
  }
  if (a.kind() != b.kind()) return false;
  if (a.string()) {
    spend(std::min(a.string()->text.size(), b.string()->text.size()) / 64);
    return a.string()->text == b.string()->text;
  }
  if (a.sequence()) return equal_sequences(*a.sequence(), *b.sequence());
  if (a.dict()) return equal_dicts(*a.dict(), *b.dict());
  return a.object() == b.object();  // null for none and undefined
}

void append_text(std::string& out, const Value& value) {
  if (const String* s = value.string()) {
    out += s->text;
  } else if (value.is_none()) {
    out += "None";
  } else if (const bool* b = value.boolean()) {
    out += *b ? "True" : "False";
  } else if (const Int* i = value.integer()) {
    out += format_integer(*i);
  } else if (const double* d = value.real()) {
    out += format_real(*d);
  } else if (!value.is_undefined()) {
    append_repr(out, value);
  }
}

std::string to_text(const Value& value) {
  std::string out;
  append_text(out, value);
  return out;
}

std::string repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

SequencePtr iterate_or_null(const Value& value) {
  if (value.sequence()) return value.shared_sequence();
  std::vector<Value> items;
  if (const Dict* dict = value.dict()) {
    for (const auto& entry : dict->entries) items.push_back(entry.first);
  } else if (const String* s = value.string()) {
    const Charge characters(s->n_code_points * (sizeof(Value) + sizeof(String)));
    for (size_t i = 0; i < s->text.size();) {
      const size_t start = i;
      next_code_point(s->text, i);
      items.emplace_back(s->text.substr(start, i - start), s->safety);
    }
  } else if (Object* object = value.object()) {
    return object->iterate();
  } else if (!value.is_undefined()) {
    return nullptr;
  }
  return std::make_shared<Sequence>(std::move(items), SequenceKind::kList);
}

SequencePtr iterate(const Value& value) {
  SequencePtr items = iterate_or_null(value);
  if (!items) fail("'{}' object is not iterable", type_name(value));
  return items;
}

int64_t length_or_minus_one(const Value& value) {
  if (const String* s = value.string()) return int64_t(s->n_code_points);
  if (const Sequence* s = value.sequence()) return int64_t(s->items.size());
  if (const Dict* d = value.dict()) return int64_t(d->entries.size());
  if (const Object* object = value.object()) return object->length();
  return value.is_undefined() ? 0 : -1;
}

bool is_number(const Value& value) { return value.boolean() || value.integer() || value.real(); }

double to_double(const Value& value) {
  if (const double* d = value.real()) return *d;
  return double(to_integer(value));
}

Int to_integer(const Value& value) {
  if (const Int* i = value.integer()) return *i;
  if (const bool* b = value.boolean()) return *b;
  if (const Undefined* undefined = value.undefined()) fail_undefined(*undefined);
  fail("expected an integer, got '{}'", type_name(value));
}

int64_t to_int64(const Value& value) {
  return int64_t(std::clamp(to_integer(value), Int(INT64_MIN), Int(INT64_MAX)));
}

std::string format_integer(Int value) {
  char buffer[48];
  char* p = buffer + sizeof buffer;
  auto rest = static_cast<unsigned __int128>(value < 0 ? -static_cast<unsigned __int128>(value)
                                                       : static_cast<unsigned __int128>(value));
  do {
    *--p = char('0' + int(rest % 10));
    rest /= 10;
  } while (rest);
  if (value < 0) *--p = '-';
  return std::string(p, size_t(buffer + sizeof buffer - p));
}

std::string format_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view shortest(buffer, size_t(end.ptr - buffer));
  const int exponent = std::stoi(std::string(shortest.substr(shortest.find('e') + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string out(buffer, size_t(fixed.ptr - buffer));
  if (out.find('.') == out.npos) out += ".0";
  return out;
}

}  // namespace sluice::jinja
