#include "plan/catalog.h"

#include <algorithm>
#include <cctype>

#include "plan/embedded.h"

namespace sluice {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view without_owner(std::string_view name) {
  return name.substr(name.find('/') == name.npos ? 0 : name.find('/') + 1);
}

const std::vector<Config>& entries() {
  static const std::vector<Config> kEntries = [] {
    std::vector<Config> all;
    for (const EmbeddedFile& file : catalog_files()) {
      all.emplace_back(parse_json(file.text, file.file), file.file);
    }
    std::sort(all.begin(), all.end(), [](const Config& a, const Config& b) {
      return lower(a.text("name")) < lower(b.text("name"));
    });
    return all;
  }();
  return kEntries;
}

const Config* find_entry(std::string_view name) {
  const std::string wanted = lower(without_owner(name));
  for (const Config& entry : entries()) {
    if (lower(entry.text("name")) == wanted) return &entry;
    if (!entry.has("aliases")) continue;
    for (const std::string& alias : entry.texts("aliases")) {
      if (lower(alias) == wanted) return &entry;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> catalog_names() {
  std::vector<std::string> names;
  for (const Config& entry : entries()) names.push_back(entry.text("name"));
  return names;
}

std::optional<std::string> catalog_name(std::string_view name) {
  const Config* entry = find_entry(name);
  if (entry == nullptr) return std::nullopt;
  return entry->text("name");
}

std::optional<Config> catalog_config(std::string_view name) {
  const Config* entry = find_entry(name);
  if (entry == nullptr) return std::nullopt;
  return Config(entry->object("config").json(), entry->text("source"));
}

std::optional<Config> published_parameters(std::string_view name) {
  const Config* entry = find_entry(name);
  if (entry == nullptr || !entry->has("published_parameters")) return std::nullopt;
  return entry->object("published_parameters");
}

}  // namespace sluice
