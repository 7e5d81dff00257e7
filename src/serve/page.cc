#include "serve/page.h"

#include <string>

#include "base/embedded.h"

namespace sluice {

std::span<const EmbeddedFile> page_files();

namespace {

constexpr std::string_view kUrl = "/page/";
constexpr std::string_view kFolder = "src/serve/page/";

/// Scripts and styles come from this server alone, nothing is inline, nobody frames the page.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const char* content_type(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/html; charset=utf-8";
}

}  // namespace

bool is_page(std::string_view path) { return path == "/" || path.starts_with(kUrl); }

std::string_view page_file(std::string_view name) {
  for (const EmbeddedFile& file : page_files()) {
    if (std::string_view(file.file).substr(kFolder.size()) == name) return file.text;
  }
  return {};
}

HttpResponse page_response(std::string_view path) {
  const std::string_view name = path == "/" ? "index.html" : path.substr(kUrl.size());
  const std::string_view text = page_file(name);
  if (text.empty()) {
    return http_error(404, "The page has no such file.", "invalid_request_error", "", "not_found");
  }
  return {.status = 200,
          .body = std::string(text),
          .content_type = content_type(name),
          .headers = {{"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}}};
}

}  // namespace sluice
