#include "text/decoder.h"

#include <optional>

#include "text/unicode.h"

namespace sluice {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // "▁"

/// The value of a name "<0xNN>"; -1 if it is not one.
int byte_of_name(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return -1;
  int value = 0;
  for (const char c : name.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  size_t at = text.find(from);
  if (at == std::string::npos) return text;
  std::string out;
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  return out.append(text, done);
}

/// A step without state: each token by itself.
template <typename F>
class Each : public Decoder {
 public:
  explicit Each(F function) : function_(std::move(function)) {}

  std::unique_ptr<DecodeStep> start() const override { return std::make_unique<Step>(*this); }
  std::string bytes(int32_t, std::string text) const override { return function_(std::move(text)); }

 private:
  struct Step : DecodeStep {
    explicit Step(const Each& each) : each(each) {}
    void push(Fragment fragment, const Sink& sink) override {
      fragment.text = each.function_(std::move(fragment.text));
      sink(std::move(fragment));
    }
    const Each& each;
  };

  F function_;
};

template <typename F>
DecoderPtr make_each(F function) {
  return std::make_unique<Each<F>>(std::move(function));
}

/// A step with a state of type S and a way to see one token's bytes.
template <typename S, typename F>
class Stateful : public Decoder {
 public:
  Stateful(S initial, F bytes) : initial_(std::move(initial)), bytes_(std::move(bytes)) {}
  std::unique_ptr<DecodeStep> start() const override { return std::make_unique<S>(initial_); }
  std::string bytes(int32_t id, std::string text) const override {
    return bytes_(id, std::move(text));
  }

 private:
  S initial_;
  F bytes_;
};

template <typename S, typename F>
DecoderPtr make_stateful(S initial, F bytes) {
  return std::make_unique<Stateful<S, F>>(std::move(initial), std::move(bytes));
}

/// Joins bytes to one token of valid UTF-8.
struct BytesStep : DecodeStep {
  explicit BytesStep(std::function<std::string(int32_t, std::string)> bytes)
      : bytes(std::move(bytes)) {}

  void push(Fragment fragment, const Sink& sink) override {
    std::string out;
    utf8.push(bytes(fragment.id, std::move(fragment.text)), out);
    emit(std::move(out), sink);
  }
  void finish(const Sink& sink) override {
    std::string out;
    utf8.finish(out);
    emit(std::move(out), sink);
  }
  void emit(std::string text, const Sink& sink) {
    if (text.empty()) return;
    sink({-1, std::move(text), started});
    started = true;
  }

  std::function<std::string(int32_t, std::string)> bytes;
  Utf8Stream utf8;
  bool started = false;
};

struct ByteFallbackStep : DecodeStep {
  void push(Fragment fragment, const Sink& sink) override {
    const int byte = byte_of_name(fragment.text);
    if (byte >= 0) {
      run.push_back(static_cast<char>(byte));
      return;
    }
    finish(sink);
    sink(std::move(fragment));
  }
  void finish(const Sink& sink) override {
    if (run.empty()) return;
    if (is_valid_utf8(run)) {
      sink({-1, run, false});
    } else {
      std::string bad;
      append_utf8(bad, kReplacementCharacter);
      for (size_t i = 0; i < run.size(); ++i) sink({-1, bad, false});
    }
    run.clear();
  }

  std::string run;
};

struct FuseStep : DecodeStep {
  void push(Fragment fragment, const Sink& sink) override {
    fragment.continues = started;
    started = true;
    sink(std::move(fragment));
  }

  bool started = false;
};

struct StripStep : DecodeStep {
  StripStep(std::string content, size_t start, size_t stop)
      : content(std::move(content)), start(start), stop(stop) {}

  void push(Fragment fragment, const Sink& sink) override {
    if (!fragment.continues) {
      end_token(sink);
      left = start;
      fresh = true;
    }
    std::string_view text = fragment.text;
    while (left > 0 && text.starts_with(content)) {
      text.remove_prefix(content.size());
      --left;
    }
    if (!text.empty()) left = 0;
    held += text;
    // What could be removed from the end stays until the token goes on.
    size_t keep = held.size();
    for (size_t i = 0; i < stop && std::string_view(held).substr(0, keep).ends_with(content); ++i) {
      keep -= content.size();
    }
    emit(held.substr(0, keep), sink);
    held.erase(0, keep);
  }
  void finish(const Sink& sink) override { end_token(sink); }

 private:
  void emit(std::string text, const Sink& sink) {
    if (text.empty() && !fresh) return;
    sink({-1, std::move(text), !fresh});
    fresh = false;
  }
  void end_token(const Sink&) { held.clear(); }

  std::string content;
  size_t start, stop;
  std::string held;  // at most `stop` times `content`, which end the token so far
  size_t left = 0;
  bool fresh = true;
};

struct MetaspaceStep : DecodeStep {
  MetaspaceStep(std::string replacement, bool drop_first)
      : replacement(std::move(replacement)), first(drop_first) {}
  void push(Fragment fragment, const Sink& sink) override {
    if (!fragment.continues && seen) first = false;
    seen = true;
    fragment.text = replaced(std::move(fragment.text), replacement, first ? "" : " ");
    sink(std::move(fragment));
  }

  std::string replacement;
  bool first;
  bool seen = false;
};

std::string clean_up(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replaced(std::move(text), from, to);
  return text;
}

struct WordPieceRules {
  std::string prefix;
  bool cleanup;

  std::string apply(std::string text, bool first) const {
    if (!first) {
      text =
          text.starts_with(prefix) ? text.substr(prefix.size()) : std::string(1, ' ').append(text);
    }
    return cleanup ? clean_up(std::move(text)) : text;
  }
};

struct WordPieceStep : DecodeStep {
  explicit WordPieceStep(WordPieceRules rules) : rules(std::move(rules)) {}
  void push(Fragment fragment, const Sink& sink) override {
    fragment.text = rules.apply(std::move(fragment.text), first);
    first = false;
    sink(std::move(fragment));
  }

  WordPieceRules rules;
  bool first = true;
};

/// Holds one token back, since the last one is written without its space.
struct BpeStep : DecodeStep {
  explicit BpeStep(std::string suffix) : suffix(std::move(suffix)) {}
  void push(Fragment fragment, const Sink& sink) override {
    if (held) {
      held->text = replaced(std::move(held->text), suffix, " ");
      sink(std::move(*held));
    }
    held = std::move(fragment);
  }
  void finish(const Sink& sink) override {
    if (!held) return;
    held->text = replaced(std::move(held->text), suffix, "");
    sink(std::move(*held));
  }

  std::string suffix;
  std::optional<Fragment> held;
};

struct JoiningStep : DecodeStep {
  void push(Fragment fragment, const Sink& sink) override {
    if (!first && !fragment.continues) fragment.text.insert(0, 1, ' ');
    first = false;
    sink(std::move(fragment));
  }

  bool first = true;
};

struct SentencePieceStep : DecodeStep {
  explicit SentencePieceStep(std::shared_ptr<const SentencePieceDecoding> rules)
      : rules(std::move(rules)) {}

  void push(Fragment fragment, const Sink& sink) override {
    const auto id = static_cast<size_t>(fragment.id);
    const PieceKind kind = id < rules->kinds.size() ? rules->kinds[id] : PieceKind::kNormal;
    if (kind == PieceKind::kByte) {
      bytes.push_back(static_cast<char>(byte_of_name(fragment.text)));
      emit_bytes(false, sink);
      return;
    }
    emit_bytes(true, sink);
    if (space_seen || any_text) at_start = false;
    space_seen = false;
    std::string text;
    if (kind == PieceKind::kUnknown) {
      text = rules->unknown_surface;
    } else if (kind == PieceKind::kNormal) {
      std::string_view rest = fragment.text;
      if (at_start && rules->strip_first_space && rest.starts_with(kSpaceMark)) {
        rest.remove_prefix(kSpaceMark.size());
        space_seen = !rules->strip_all_leading;
      }
      text = replaced(std::string(rest), kSpaceMark, " ");
    }
    emit(std::move(text), sink);
  }
  void finish(const Sink& sink) override { emit_bytes(true, sink); }

 private:
  void emit(std::string text, const Sink& sink) {
    if (text.empty()) return;
    any_text = true;
    sink({-1, std::move(text), false});
  }

  /// Whole characters; U+FFFD for every byte that is in none, at the end only if `all`.
  void emit_bytes(bool all, const Sink& sink) {
    std::string out;
    size_t done = 0;
    while (done < bytes.size()) {
      const CodePoint c = decode_utf8(bytes, done);
      if (c.truncated && !all) break;
      const size_t length = c.valid ? c.length : 1;
      if (c.valid) {
        out += bytes.substr(done, length);
      } else {
        append_utf8(out, kReplacementCharacter);
      }
      done += length;
    }
    bytes.erase(0, done);
    emit(std::move(out), sink);
  }

  std::shared_ptr<const SentencePieceDecoding> rules;
  std::string bytes;
  bool at_start = true;
  bool space_seen = false;
  bool any_text = false;
};

}  // namespace

DecoderPtr make_byte_level_decoder() {
  const auto bytes = [](int32_t, std::string text) { return bytes_of_name(text).value_or(text); };
  return make_stateful(BytesStep(bytes), bytes);
}

DecoderPtr make_bytes_decoder(std::vector<int16_t> byte_of) {
  const auto bytes = [table = std::make_shared<std::vector<int16_t>>(std::move(byte_of))](
                         int32_t id, std::string text) {
    const auto i = static_cast<size_t>(id);
    return i < table->size() && (*table)[i] >= 0 ? std::string(1, static_cast<char>((*table)[i]))
                                                 : text;
  };
  return make_stateful(BytesStep(bytes), bytes);
}

DecoderPtr make_byte_fallback_decoder() {
  return make_stateful(ByteFallbackStep(), [](int32_t, std::string text) {
    const int byte = byte_of_name(text);
    return byte < 0 ? text : std::string(1, static_cast<char>(byte));
  });
}

DecoderPtr make_fuse_decoder() {
  return make_stateful(FuseStep(), [](int32_t, std::string text) { return text; });
}

DecoderPtr make_strip_decoder(std::string content, size_t start, size_t stop) {
  return make_stateful(StripStep(std::move(content), start, stop),
                       [](int32_t, std::string text) { return text; });
}

DecoderPtr make_replace_decoder(std::string literal, std::string content) {
  return make_each([literal = std::move(literal), content = std::move(content)](std::string text) {
    return replaced(std::move(text), literal, content);
  });
}

DecoderPtr make_replace_decoder(Regex pattern, std::string content) {
  return make_each([pattern = std::move(pattern), content = std::move(content)](std::string text) {
    std::string out;
    size_t done = 0;
    for (size_t from = 0; from < text.size();) {
      const auto match = pattern.find(text, from);
      if (!match) break;
      out.append(text, done, match->first - done).append(content);
      done = match->second;
      from =
          done > match->first || done >= text.size() ? done : done + decode_utf8(text, done).length;
    }
    return out.append(text, done);
  });
}

DecoderPtr make_metaspace_decoder(std::string replacement, bool drop_first) {
  MetaspaceStep step(replacement, drop_first);
  return make_stateful(std::move(step),
                       [replacement = std::move(replacement)](int32_t, std::string text) {
                         return replaced(std::move(text), replacement, " ");
                       });
}

DecoderPtr make_word_piece_decoder(std::string prefix, bool cleanup) {
  const WordPieceRules rules{std::move(prefix), cleanup};
  return make_stateful(WordPieceStep(rules), [rules](int32_t, std::string text) {
    return rules.apply(std::move(text), false);
  });
}

DecoderPtr make_bpe_decoder(std::string suffix) {
  BpeStep step(suffix);
  return make_stateful(std::move(step), [suffix = std::move(suffix)](int32_t, std::string text) {
    return replaced(std::move(text), suffix, " ");
  });
}

DecoderPtr make_joining_decoder() {
  return make_stateful(JoiningStep(),
                       [](int32_t, std::string text) { return std::string(1, ' ').append(text); });
}

DecoderPtr make_sentencepiece_decoder(SentencePieceDecoding rules) {
  const auto shared = std::make_shared<const SentencePieceDecoding>(std::move(rules));
  return make_stateful(SentencePieceStep(shared), [shared](int32_t id, std::string text) {
    const auto i = static_cast<size_t>(id);
    if (i < shared->kinds.size() && shared->kinds[i] == PieceKind::kByte) {
      return std::string(1, static_cast<char>(byte_of_name(text)));
    }
    return replaced(std::move(text), kSpaceMark, " ");
  });
}

DecodeStream::DecodeStream(const std::vector<DecoderPtr>& decoders) {
  for (const auto& decoder : decoders) steps_.push_back(decoder->start());
}

void DecodeStream::push(int32_t id, std::string_view name, std::string& out) {
  pass(0, {id, std::string(name), false}, out);
}

void DecodeStream::pass(size_t step, Fragment fragment, std::string& out) {
  if (step == steps_.size()) {
    out += fragment.text;
    return;
  }
  steps_[step]->push(std::move(fragment),
                     [&](Fragment next) { pass(step + 1, std::move(next), out); });
}

void DecodeStream::finish(std::string& out) {
  for (size_t step = 0; step < steps_.size(); ++step) {
    steps_[step]->finish([&](Fragment next) { pass(step + 1, std::move(next), out); });
  }
}

}  // namespace sluice
