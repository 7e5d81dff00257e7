// What Codex CLI needs to know to use a server.
#pragma once

#include <string>

#include "base/json.h"

namespace sluice {

struct CodexServer {
  std::string model;    // its name
  std::string url;      // up to /v1
  int64_t context = 0;  // tokens
  bool needs_key = false;
  std::string catalogue;  // the path of the file that holds codex_catalogue()
};

/// A config.toml. The key, if there must be one, comes from $SLUICE_API_KEY.
std::string codex_config(const CodexServer& server);

/// A model catalogue with one entry: without it Codex knows neither the context nor that the model
/// can patch files.
OrderedJson codex_catalogue(const CodexServer& server);

}  // namespace sluice
