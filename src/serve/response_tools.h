// The tools of a Responses request: what the model may call, and how its calls look to the client.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/chat.h"
#include "serve/fields.h"

namespace sluice {

/// A tool as the client named it.
struct ResponseToolName {
  std::string name;
  std::string space;  // the namespace it was in; empty: none
};

class ResponseTools {
 public:
  /// Adds tools of every type. Functions and custom tools, also those within namespaces, can be
  /// called; hosted ones that this server lacks are echoed and kept from the model. `param` is the
  /// array's name in errors. Throws ApiError.
  void add(const OrderedJson& tools, const std::string& param);
  /// "tool_choice" and "parallel_tool_calls"; gives `request` its tools. Throws ApiError.
  void choose(const Fields& body, ChatRequest& request) const;

  /// What the model calls a tool of the client.
  static std::string model_name(const std::string& name, const std::string& space);
  /// The other way round.
  ResponseToolName client_name(const std::string& model_name) const;
  /// The tools that stood in the request's own field, as the response shows them.
  static OrderedJson echo(const OrderedJson* tools);

 private:
  void add_one(const Fields& tool, const std::string& space);
  /// As the model knows them.
  std::vector<std::string> allowed(const Fields& choice) const;
  const ChatTool& named(const Fields& choice) const;

  std::vector<ChatTool> callable_;
  std::map<std::string, ResponseToolName> names_;
};

}  // namespace sluice
