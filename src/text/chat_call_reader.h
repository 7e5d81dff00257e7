// Reads calls of tools out of the text behind a marker, one character at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "text/chat_delta.h"
#include "text/chat_format.h"
#include "text/json_scanner.h"

namespace sluice {

/// Reads what stands between a format's opening and closing markers, and is generous: a single
/// object or an array, names before or behind the arguments, arguments as objects or as strings.
/// What turns out to be no call, or one of an unknown tool, becomes text again.
class CallReader {
 public:
  enum class Result {
    kMore,    // the character was read
    kDone,    // it was the last one
    kBehind,  // the calls ended before it
  };

  /// Both must live on.
  CallReader(const ChatFormat& format, DeltaSink& sink) : format_(&format), sink_(&sink) {}

  /// `opening` was read: the marker, or nothing.
  void start(std::string_view opening);
  Result push(char c);
  /// The text ends here.
  void finish();
  /// What was no call after all; ask after kBehind, kDone and finish().
  std::string take_text() { return std::exchange(text_, ""); }

 private:
  enum class State {
    kBegin,      // a call, an array of them, or a name
    kKey,        // of the call's object: the next key, or its end
    kInKey,      // within the key
    kColon,      // behind the key
    kValue,      // before its value
    kName,       // within the name
    kArguments,  // within the arguments
    kSkip,       // within some other value
    kHead,       // the name that stands before a separator
    kHeadJson,   // between the separator and the arguments
    kTag,        // between XML tags
    kInTag,      // within one
    kParameter,  // within an XML parameter's value
    kAfter,      // behind a call: another one or the closing marker
    kClose,      // within the closing marker
  };

  Result read(char c);
  Result begin(char c);
  Result key(char c);
  Result value(char c);
  Result named();
  Result scan(char c);
  Result end_object();
  Result head(char c);
  Result head_json(char c);
  Result tag(char c);
  Result parameter(char c);
  void end_parameter();
  Result after(char c);
  Result close(char c);
  Result fail();
  bool begin_call(std::string_view name);
  void begin_parameter(const std::string& name);
  void add_arguments(char c);
  void end_arguments();
  void end_call();

  const ChatFormat* format_;
  DeltaSink* sink_;
  State state_ = State::kBegin;
  std::string raw_;  // since the last call: becomes text if this is none
  std::string text_;
  bool called_ = false, in_array_ = false;
  bool begun_ = false;     // the call was given out
  bool complete_ = false;  // and so were all its arguments
  int nesting_ = 0;        // objects around the key
  std::string word_;       // a key, name, tag or closing marker so far
  std::string name_;       // of the call; empty: not yet known
  std::string arguments_;  // that cannot be given out yet
  bool has_arguments_ = false;
  bool quoted_ = false;  // the arguments are a string
  bool headed_ = false;  // no object is around the arguments
  JsonScanner scanner_;
  const ChatTool* tool_ = nullptr;
  // XML:
  bool is_xml_ = false;
  std::string value_, held_;   // of a parameter, and what may be its end
  bool is_text_ = false;       // the value is given out as a string, as it comes
  bool at_line_start_ = true;  // the line break behind the tag does not count
  int n_parameters_ = 0;
};

}  // namespace sluice
