// JSON to values, and json.dumps with the options that templates pass to tojson.
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "text/jinja_builtins.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

std::string escape_json(std::string_view text, bool ascii) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
    if (const size_t known = c < 0x80 ? kShort.find(char(c)) : kShort.npos; known != kShort.npos) {
      out += '\\';
      out += "\"\\nrtbf"[known];
    } else if (c < 0x20 || (ascii && c >= 0x7f && c < 0x10000)) {
      out += fmt::format("\\u{:04x}", uint32_t(c));
    } else if (ascii && c >= 0x10000) {
      const uint32_t rest = uint32_t(c) - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    } else {
      out += text.substr(start, i - start);
    }
  }
  return out + '"';
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Value& value) {
    spend(1);
    if (const String* s = value.string()) {
      out_.append(escape_json(s->text, style_.ascii));
    } else if (value.is_none()) {
      out_.append("null");
    } else if (const bool* b = value.boolean()) {
      out_.append(*b ? "true" : "false");
    } else if (is_number(value)) {
      out_.append(number(value));
    } else if (const Sequence* items = value.sequence()) {
      write_list(*items);
    } else if (const Dict* dict = value.dict()) {
      write_dict(*dict);
    } else {
      fail("Object of type {} is not JSON serializable", type_name(value));
    }
  }

  std::string take() { return out_.take(); }

 private:
  static std::string number(const Value& value) {
    const double* d = value.real();
    if (d && std::isnan(*d)) return "NaN";
    if (d && std::isinf(*d)) return *d < 0 ? "-Infinity" : "Infinity";
    return to_text(value);
  }

  std::string key(const Value& value) const {
    if (value.string()) return value.string()->text;
    if (value.is_none()) return "null";
    if (const bool* b = value.boolean()) return *b ? "true" : "false";
    if (is_number(value)) return number(value);
    fail("keys must be str, int, float, bool or None, not {}", type_name(value));
  }

  void new_line() {
    if (!style_.multiline) return;
    out_.append("\n");
    for (int i = 0; i < level_; ++i) out_.append(style_.indent_unit);
  }

  void write_list(const Sequence& sequence) {
    if (sequence.items.empty()) return out_.append("[]");
    out_.append("[");
    ++level_;
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      if (i) out_.append(style_.item_separator);
      new_line();
      write(sequence.items[i]);
    }
    --level_;
    new_line();
    out_.append("]");
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) return out_.append("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto* a, const auto* b) { return order_keys(a->first, b->first); });
    }
    out_.append("{");
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i) out_.append(style_.item_separator);
      new_line();
      out_.append(escape_json(key(entries[i]->first), style_.ascii));
      out_.append(style_.key_separator);
      write(entries[i]->second);
    }
    --level_;
    new_line();
    out_.append("}");
  }

  static bool order_keys(const Value& a, const Value& b) {
    if (a.string() && b.string()) return a.string()->text < b.string()->text;
    if (is_number(a) && is_number(b)) return to_double(a) < to_double(b);
    fail("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
  }

  const JsonStyle& style_;
  Output out_;
  int level_ = 0;
};

}  // namespace

Value Value::from_json(const OrderedJson& json) {
  switch (json.type()) {
    case OrderedJson::value_t::boolean:
      return json.get<bool>();
    case OrderedJson::value_t::number_integer:
      return json.get<int64_t>();
    case OrderedJson::value_t::number_unsigned:
      return Int(json.get<uint64_t>());
    case OrderedJson::value_t::number_float:
      return json.get<double>();
    case OrderedJson::value_t::string:
      return json.get_ref<const std::string&>();
    case OrderedJson::value_t::array: {
      std::vector<Value> items;
      for (const OrderedJson& item : json) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case OrderedJson::value_t::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, item] : json.items()) entries.emplace_back(key, from_json(item));
      return dict(std::move(entries));
    }
    default:
      return None{};
  }
}

std::string dump_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value);
  return writer.take();
}

}  // namespace sluice::jinja
