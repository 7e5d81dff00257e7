// The values of a template: Python's objects as far as templates can tell.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja_budget.h"

namespace sluice::jinja {

class Value;

/// Integers have 128 bits; beyond them arithmetic fails where Python would go on.
using Int = __int128;

struct String;
struct Sequence;
struct Dict;
struct Object;
using StringPtr = std::shared_ptr<const String>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;

/// Printing it gives nothing, using it fails. `name` is what was looked up, in an `owner` type; a
/// null owner is a variable, an empty one means that `name` is the whole message.
struct Undefined {
  StringPtr name;
  const char* owner = nullptr;
};
struct None {};

/// A group is the pair (grouper, list) of the filter groupby; it is a tuple in all else.
enum class SequenceKind { kList, kTuple, kGroup };
enum class Safety { kPlain, kSafe };  // safe text is not escaped again (markupsafe.Markup)

/// A value. Texts, lists and dicts are shared and never change.
class Value {
 public:
  Value() : data_(None{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(None none) : data_(none) {}
  Value(bool value) : data_(value) {}
  Value(int value) : data_(Int(value)) {}
  Value(int64_t value) : data_(Int(value)) {}
  Value(size_t value) : data_(Int(value)) {}
  Value(Int value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string text, Safety safety = Safety::kPlain);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(StringPtr text) : data_(std::move(text)) {}
  Value(SequencePtr items) : data_(std::move(items)) {}
  Value(DictPtr dict) : data_(std::move(dict)) {}
  Value(ObjectPtr object) : data_(std::move(object)) {}

  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(std::vector<std::pair<Value, Value>> entries);
  static Value from_json(const nlohmann::ordered_json& json);

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }

  // Null when the value is of another type.
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const Int* integer() const { return std::get_if<Int>(&data_); }
  const double* real() const { return std::get_if<double>(&data_); }
  const String* string() const;
  const Sequence* sequence() const;
  const Dict* dict() const;
  Object* object() const;
  StringPtr shared_string() const;
  SequencePtr shared_sequence() const;
  ObjectPtr shared_object() const;
  DictPtr shared_dict() const;
  template <typename T>
  T* as() const {
    return dynamic_cast<T*>(object());
  }

  const void* identity() const;  // address of what is shared, or null
  size_t kind() const { return data_.index(); }

 private:
  std::variant<Undefined, None, bool, Int, double, StringPtr, SequencePtr, DictPtr, ObjectPtr>
      data_;
};

struct String {
  explicit String(std::string value, Safety mark = Safety::kPlain);
  std::string text;
  size_t n_code_points;
  Safety safety;
  Charge charge;
};

struct Sequence {
  Sequence(std::vector<Value> values, SequenceKind sequence_kind);
  bool is_list() const { return kind == SequenceKind::kList; }

  std::vector<Value> items;
  SequenceKind kind;
  int depth;  // 1 + that of the deepest item
  Charge charge;
};

struct ValueHash {
  size_t operator()(const Value& value) const;
};
struct ValueEqual {
  bool operator()(const Value& a, const Value& b) const;
};

/// Keys in the order of their first insertion. Keys are hashable values; 1, 1.0 and true are one
/// key.
struct Dict {
  explicit Dict(std::vector<std::pair<Value, Value>> pairs);
  const Value* find(const Value& key) const;
  const Value* find_text(std::string_view key) const;

  std::vector<std::pair<Value, Value>> entries;
  int depth;
  Charge charge;

 private:
  std::unordered_map<Value, size_t, ValueHash, ValueEqual> index_;  // empty for small dicts
};

/// Everything else: ranges, iterators, namespaces, functions, macros, the loop.
struct Object {
  /// `item_depth`: the depth of the deepest value that the object holds for good.
  explicit Object(int item_depth = 0);
  virtual ~Object() = default;
  virtual const char* type_name() const = 0;
  virtual std::string repr() const;
  virtual bool truthy() const { return true; }
  virtual bool callable() const { return false; }
  /// Null when the object is not iterable. An iterator is used up by the call.
  virtual SequencePtr iterate() { return nullptr; }
  /// -1 when it has no length.
  virtual int64_t length() const { return -1; }

  const int depth;
  const Charge charge;
};

/// Levels of nesting in a value: 0 for scalars.
int depth_of(const Value& value);
int depth_of(const std::vector<Value>& values);

const char* type_name(const Value& value);
[[noreturn]] void fail_undefined(const Undefined& undefined);

bool truthy(const Value& value);
bool equal(const Value& a, const Value& b);
std::string to_text(const Value& value);  // str()
std::string repr(const Value& value);     // repr()
/// Calls `visit` with pieces of str(value), without building it where it exists already.
void append_text(std::string& out, const Value& value);

/// The items that `for` sees. Throws if the value is not iterable.
SequencePtr iterate(const Value& value);
SequencePtr iterate_or_null(const Value& value);
int64_t length_or_minus_one(const Value& value);  // len()

/// True for bool, int and float; `out` receives the number.
bool is_number(const Value& value);
double to_double(const Value& value);
/// int of a bool or int; throws "expected an integer" otherwise.
Int to_integer(const Value& value);
/// As to_integer, clamped to 64 bits.
int64_t to_int64(const Value& value);

std::string format_integer(Int value);
std::string format_real(double value);  // repr(float)

}  // namespace sluice::jinja
