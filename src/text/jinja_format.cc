// Python's two ways of formatting: "..." % values and "...".format(values).
#include <algorithm>
#include <cmath>

#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxPrecision = 500;

/// How one value is laid out; the union of what both ways can say.
struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =, or the default of the type
  char sign = '-';    // + - or space
  bool alternate = false;
  char grouping = '\0';
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};

int64_t read_number(std::string_view text, size_t& i, int64_t limit) {
  int64_t value = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = value * 10 + (text[i] - '0');
    if (value > limit) fail("a width or precision in a format is too large");
  }
  return value;
}

std::string pad(const std::string& text, const Spec& spec, char default_align) {
  const int64_t missing = spec.width - int64_t(count_code_points(text));
  if (missing <= 0) return text;
  const char align = spec.align ? spec.align : default_align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += spec.fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += spec.fill;
  return out;
}

std::string group_digits(const std::string& digits, char separator, size_t size) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

/// Sign, prefix and digits, padded; '=' pads between the sign and the digits.
std::string lay_out(bool negative, const std::string& prefix, std::string digits,
                    const Spec& spec) {
  if (spec.grouping) {
    const size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
    const bool by_four =
        spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b';
    digits =
        group_digits(digits.substr(0, end), spec.grouping, by_four ? 4 : 3) + digits.substr(end);
  }
  const std::string head = std::string(negative           ? "-"
                                       : spec.sign == '-' ? ""
                                                          : std::string(1, spec.sign)) +
                           prefix;
  if (spec.align != '=') return pad(head + digits, spec, '>');
  Spec inner = spec;
  inner.width -= int64_t(head.size());
  return head + pad(digits, inner, '>');
}

std::string integer_digits(Int value, unsigned base, bool upper) {
  auto rest = static_cast<unsigned __int128>(value);
  if (value < 0) rest = -rest;
  const char* const letters = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    const auto digit = size_t(rest % base);
    digits += letters[digit];
    rest /= base;
  } while (rest);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string format_integer_as(Int value, const Spec& spec) {
  const char type = spec.type | 0x20;
  const unsigned base = type == 'x' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits = integer_digits(value, base, spec.type == 'X');
  if (spec.precision > int64_t(digits.size())) {
    digits.insert(0, size_t(spec.precision) - digits.size(), '0');
  }
  const std::string prefix = spec.alternate && base != 10 ? std::string("0") + spec.type : "";
  return lay_out(value < 0, prefix, std::move(digits), spec);
}

std::string format_real_as(double value, const Spec& spec) {
  const int precision = int(spec.precision < 0 ? 6 : spec.precision);
  const double size = std::abs(value);
  std::string digits;
  switch (spec.type) {
    case 'f':
      digits = fmt::format("{:.{}f}", size, precision);
      break;
    case 'F':
      digits = fmt::format("{:.{}F}", size, precision);
      break;
    case 'e':
      digits = fmt::format("{:.{}e}", size, precision);
      break;
    case 'E':
      digits = fmt::format("{:.{}E}", size, precision);
      break;
    case '%':
      digits = fmt::format("{:.{}f}%", size * 100, precision);
      break;
    case 'G':
      digits = fmt::format("{:.{}G}", size, std::max(precision, 1));
      break;
    case '\0':
      digits = spec.precision < 0 ? format_real(size)
                                  : fmt::format("{:.{}g}", size, std::max(precision, 1));
      if (digits.find_first_of(".en") == digits.npos) digits += ".0";
      break;
    default:
      digits = fmt::format("{:.{}g}", size, std::max(precision, 1));
  }
  return lay_out(std::signbit(value), "", std::move(digits), spec);
}

std::string cut(const std::string& text, int64_t precision) {
  return precision < 0 ? text : text.substr(0, byte_offset(text, size_t(precision)));
}

// ---- "..." % values ----

class PercentFormatter {
 public:
  PercentFormatter(const String& format, const Value& arguments)
      : format_(format.text), escapes_(format.safety == Safety::kSafe), arguments_(arguments) {
    const Sequence* s = arguments.sequence();
    tuple_ = s && !s->is_list() ? s : nullptr;
  }

  std::string run() {
    Output out;
    while (i_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', i_), format_.size());
      out.append(format_.substr(i_, percent - i_));
      i_ = percent + 1;
      if (percent < format_.size()) out.append(one());
    }
    const size_t n = tuple_ ? tuple_->items.size() : 1;
    const bool unused_is_fine = !tuple_ && (used_key_ || arguments_.dict() ||
                                            arguments_.sequence() || arguments_.is_undefined());
    if (next_ < n && !unused_is_fine) fail("not all arguments converted during string formatting");
    return out.take();
  }

 private:
  char at() const {
    if (i_ >= format_.size()) fail("incomplete format");
    return format_[i_];
  }

  const Value& next() {
    if (key_) return *key_;
    if (next_ >= (tuple_ ? tuple_->items.size() : 1))
      fail("not enough arguments for format string");
    return tuple_ ? tuple_->items[next_++] : (++next_, arguments_);
  }

  void read_key() {
    key_ = nullptr;
    if (at() != '(') return;
    const size_t close = format_.find(')', i_);
    if (close == format_.npos) fail("incomplete format key");
    if (!arguments_.dict()) fail("format requires a mapping");
    const std::string_view name = format_.substr(i_ + 1, close - i_ - 1);
    key_ = arguments_.dict()->find_text(name);
    if (!key_) fail("format key '{}' is missing", name);
    used_key_ = true;
    i_ = close + 1;
  }

  int64_t read_size(int64_t limit) {
    if (at() != '*') return read_number(format_, i_, limit);
    ++i_;
    const int64_t value = to_int64(next());
    if (value > limit || value < -limit) fail("a width or precision in a format is too large");
    return value;
  }

  std::string one() {
    Spec spec;
    read_key();
    for (;; ++i_) {
      const char flag = at();
      if (flag == '-') {
        spec.align = '<';
      } else if (flag == '0') {
        if (!spec.align) spec.align = '=';
      } else if (flag == '+' || (flag == ' ' && spec.sign != '+')) {
        spec.sign = flag;
      } else if (flag == '#') {
        spec.alternate = true;
      } else if (flag != ' ') {
        break;
      }
    }
    spec.width = read_size(kMaxWidth);
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (at() == '.') {
      ++i_;
      spec.precision = std::max<int64_t>(read_size(kMaxPrecision), 0);
    }
    while (at() == 'l' || at() == 'h' || at() == 'L') ++i_;
    spec.type = format_[i_++];
    return spec.type == '%' ? "%" : convert(spec);
  }

  std::string convert(Spec spec) {
    const Value& value = next();
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': {
        if (spec.align == '=') spec.align = '>';
        std::string text = spec.type == 's' ? to_text(value) : repr(value);
        if (escapes_) text = spec.type == 's' ? escaped_text(value) : escape_html(text);
        return pad(cut(text, spec.precision), spec, '>');
      }
      case 'c': {
        if (spec.align == '=') spec.align = '>';
        std::string text;
        if (value.string() && value.string()->n_code_points == 1) {
          text = value.string()->text;
        } else {
          const int64_t c = to_int64(value);
          if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            fail("%c arg not in range(0x110000)");
          append_code_point(text, char32_t(c));
        }
        return pad(text, spec, '>');
      }
      default:
        return convert_number(value, spec);
    }
  }

  static std::string convert_number(const Value& value, Spec spec) {
    if (spec.align == '=') spec.fill.assign(1, '0');
    if (std::string_view("diuxXo").find(spec.type) != std::string_view::npos) {
      const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
      if (!is_number(value) || (value.real() && !decimal)) {
        fail("%{} format: a number is required, not {}", spec.type, type_name(value));
      }
      if (value.real() && !(std::abs(*value.real()) < 1e38))
        fail("cannot convert float to integer");
      return format_integer_as(value.real() ? Int(*value.real()) : to_integer(value), spec);
    }
    if (std::string_view("eEfFgG").find(spec.type) == std::string_view::npos) {
      fail("unsupported format character '{}'", spec.type);
    }
    if (!is_number(value)) fail("must be real number, not {}", type_name(value));
    return format_real_as(to_double(value), spec);
  }

  const std::string_view format_;
  const bool escapes_;  // a safe format escapes what it takes in
  const Value& arguments_;
  const Sequence* tuple_;
  const Value* key_ = nullptr;
  bool used_key_ = false;
  size_t i_ = 0;
  size_t next_ = 0;
};

// ---- "...".format(values) ----

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

Spec parse_spec(std::string_view text) {
  Spec spec;
  size_t i = 0;
  const auto at = [&](size_t k) { return k < text.size() ? text[k] : '\0'; };
  size_t after_fill = 0;
  if (!text.empty()) next_code_point(text, after_fill);
  if (is_align(at(after_fill))) {
    spec.fill = text.substr(0, after_fill);
    spec.align = at(after_fill);
    i = after_fill + 1;
  } else if (is_align(at(0))) {
    spec.align = at(i++);
  }
  if (at(i) == '+' || at(i) == '-' || at(i) == ' ') spec.sign = at(i++);
  if (at(i) == '#') {
    spec.alternate = true;
    ++i;
  }
  if (at(i) == '0') {
    if (!spec.align) {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
    ++i;
  }
  spec.width = read_number(text, i, kMaxWidth);
  if (at(i) == ',' || at(i) == '_') spec.grouping = at(i++);
  if (at(i) == '.') {
    const size_t begin = ++i;
    spec.precision = read_number(text, i, kMaxPrecision);
    if (i == begin) fail("Format specifier missing precision");
  }
  if (i < text.size()) spec.type = text[i++];
  if (i < text.size()) fail("Invalid format specifier '{}'", text);
  return spec;
}

std::string format_with_spec(const Value& value, std::string_view text) {
  if (text.empty()) return to_text(value);
  Spec spec = parse_spec(text);
  const bool is_text = value.string() || (value.boolean() && spec.type == 's');
  if (is_text && (spec.type == '\0' || spec.type == 's')) {
    if (spec.align == '=') spec.align = '<';
    return pad(cut(to_text(value), spec.precision), spec, '<');
  }
  if (!is_number(value)) {
    fail("unsupported format string passed to {}.__format__", type_name(value));
  }
  const bool integer_type =
      spec.type == '\0' || std::string_view("dbxXon").find(spec.type) != std::string_view::npos;
  if (!value.real() && integer_type) {
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    return format_integer_as(to_integer(value), spec);
  }
  if (std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos && spec.type != '\0') {
    fail("Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
  }
  return format_real_as(to_double(value), spec);
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Arguments& arguments)
      : runtime_(runtime), arguments_(arguments) {}

  std::string run(std::string_view format, int level) {
    if (level > 2) fail("Max string recursion exceeded");
    Output out;
    for (size_t i = 0; i < format.size();) {
      const char c = format[i];
      if (c != '{' && c != '}') {
        const size_t end = std::min(format.find_first_of("{}", i), format.size());
        out.append(format.substr(i, end - i));
        i = end;
      } else if (i + 1 < format.size() && format[i + 1] == c) {
        out.append(format.substr(i, 1));
        i += 2;
      } else if (c == '}') {
        fail("Single '}}' encountered in format string");
      } else {
        const size_t end = closing_brace(format, i + 1);
        out.append(field(format.substr(i + 1, end - i - 1), level));
        i = end + 1;
      }
    }
    return out.take();
  }

 private:
  static size_t closing_brace(std::string_view format, size_t i) {
    for (int depth = 1; i < format.size(); ++i) {
      if (format[i] == '{') ++depth;
      if (format[i] == '}' && --depth == 0) return i;
    }
    fail("expected '}}' before end of string");
  }

  std::string field(std::string_view text, int level) {
    const size_t colon = std::min(text.find(':'), text.size());
    std::string_view name = text.substr(0, colon);
    char conversion = '\0';
    if (const size_t mark = name.find('!'); mark != name.npos) {
      if (mark + 2 != name.size()) fail("expected ':' after conversion specifier");
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    Value value = look_up(name);  // before the fields of its format, which are numbered after it
    const std::string spec =
        colon < text.size() ? run(text.substr(colon + 1), level + 1) : std::string();
    if (conversion == 's') value = to_text(value);
    if (conversion == 'r' || conversion == 'a') value = repr(value);
    return format_with_spec(value, spec);
  }

  Value look_up(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first_part(name.substr(0, end));
    for (size_t i = end; i < name.size();) {
      const bool is_attribute = name[i] == '.';
      const size_t stop =
          std::min(is_attribute ? name.find_first_of(".[", i + 1) : name.find(']', i), name.size());
      const std::string part(name.substr(i + 1, stop - i - 1));
      if (part.empty()) fail("Empty attribute in format string");
      if (is_attribute) {
        value = runtime_.get_attribute(value, std::make_shared<String>(part));
      } else {
        size_t digit = 0;
        const int64_t index = read_number(part, digit, kMaxWidth);
        value = runtime_.get_item(value, digit == part.size() ? Value(index) : Value(part));
      }
      i = stop + !is_attribute;
    }
    return value;
  }

  Value first_part(std::string_view name) {
    size_t digit = 0;
    const auto index = size_t(read_number(name, digit, kMaxWidth));
    if (digit < name.size()) {
      const Value* named = arguments_.find(name);
      if (!named) fail("format: no argument '{}'", name);
      return *named;
    }
    const size_t position = name.empty() ? next_++ : index;
    if (position >= arguments_.positional.size()) {
      fail("Replacement index {} out of range for positional args tuple", position);
    }
    return arguments_.positional[position];
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  size_t next_ = 0;
};

}  // namespace

Value format_percent(const String& format, const Value& arguments) {
  return Value(PercentFormatter(format, arguments).run(), format.safety);
}

Value format_braces(Runtime& runtime, const String& format, const Arguments& arguments) {
  return Value(BraceFormatter(runtime, arguments).run(format.text, 0), format.safety);
}

}  // namespace sluice::jinja
