// The web page that is compiled in: "/" and the files it asks for under "/page/".
#pragma once

#include <string_view>

#include "serve/http.h"

namespace sluice {

/// Whether `path` belongs to the page. The page itself needs no key: it holds nothing but a form,
/// and a browser cannot send one with a link.
bool is_page(std::string_view path);
/// The text of a file of the page, e.g. "theme.css"; empty if there is none.
std::string_view page_file(std::string_view name);
/// A file of the page, or a 404.
HttpResponse page_response(std::string_view path);

}  // namespace sluice
