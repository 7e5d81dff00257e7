#include "app/codex_config.h"

#include <fmt/format.h>

namespace sluice {
namespace {

/// A basic string of TOML, which JSON's strings are.
std::string toml(const std::string& text) { return Json(text).dump(); }

constexpr const char* kInstructions =
    "You are a coding agent in a terminal on the user's computer. You share a folder with the "
    "user. "
    "Use exec_command to look at files and to run programs, and apply_patch to change files. Look "
    "before you change, change only what the task needs, and check the result. When the task is "
    "done, say in one or two sentences what you did, and stop.";

OrderedJson efforts() {
  OrderedJson levels = OrderedJson::array();
  for (const auto& [effort, description] :
       {std::pair("low", "Answers soonest"), std::pair("medium", "Thinks where it helps"),
        std::pair("high", "Thinks longest")}) {
    levels.push_back({{"effort", effort}, {"description", description}});
  }
  return levels;
}

}  // namespace

std::string codex_config(const CodexServer& server) {
  return fmt::format(
      "model = {model}\n"
      "model_provider = \"sluice\"\n"
      "model_catalog_json = {catalogue}\n"
      "web_search = \"disabled\"\n"
      "\n"
      "[model_providers.sluice]\n"
      "name = \"Sluice\"\n"
      "base_url = {url}\n"
      "wire_api = \"responses\"\n"
      "supports_websockets = true\n"
      "{key}"
      "\n"
      "[features]\n"
      "plugins = false\n"
      "apps = false\n"
      "goals = false\n"
      "\n"
      "[agents]\n"
      "enabled = false\n"
      "\n"
      "[analytics]\n"
      "enabled = false\n",
      fmt::arg("model", toml(server.model)), fmt::arg("catalogue", toml(server.catalogue)),
      fmt::arg("url", toml(server.url)),
      fmt::arg("key", server.needs_key ? "env_key = \"SLUICE_API_KEY\"\n" : ""));
}

OrderedJson codex_catalogue(const CodexServer& server) {
  const OrderedJson model = {{"slug", server.model},
                             {"display_name", server.model},
                             {"description", "Served by Sluice."},
                             {"default_reasoning_level", "medium"},
                             {"supported_reasoning_levels", efforts()},
                             {"shell_type", "unified_exec"},
                             {"visibility", "list"},
                             {"supported_in_api", true},
                             {"priority", 0},
                             {"additional_speed_tiers", OrderedJson::array()},
                             {"service_tiers", OrderedJson::array()},
                             {"availability_nux", nullptr},
                             {"upgrade", nullptr},
                             {"base_instructions", kInstructions},
                             {"model_messages", nullptr},
                             {"include_skills_usage_instructions", false},
                             {"include_plugin_usage_instructions", false},
                             {"include_apps_usage_instructions", false},
                             {"supports_reasoning_summaries", true},
                             {"default_reasoning_summary", "auto"},
                             {"support_verbosity", true},
                             {"default_verbosity", "low"},
                             {"apply_patch_tool_type", "freeform"},
                             {"web_search_tool_type", "text"},
                             {"truncation_policy", {{"mode", "tokens"}, {"limit", 4000}}},
                             {"supports_parallel_tool_calls", true},
                             {"supports_image_detail_original", false},
                             {"context_window", server.context},
                             {"max_context_window", server.context},
                             {"effective_context_window_percent", 90},
                             {"experimental_supported_tools", OrderedJson::array()},
                             {"input_modalities", OrderedJson::array({"text"})},
                             {"supports_search_tool", false},
                             {"use_responses_lite", false}};
  return {{"models", OrderedJson::array({model})}};
}

}  // namespace sluice
