#include "text/json_formats.h"

#include <utility>

namespace sluice {
namespace {

#define SLUICE_DATE                                                                       \
  "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)" \
  "|02-(0[1-9]|1[0-9]|2[0-8]))"
#define SLUICE_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define SLUICE_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define SLUICE_IPV4 SLUICE_BYTE "(\\." SLUICE_BYTE "){3}"
#define SLUICE_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define SLUICE_HOST SLUICE_LABEL "(\\." SLUICE_LABEL "){0,3}"
#define SLUICE_HEX "[0-9a-fA-F]{1,4}"

// RFC 3339 (dates, times, durations), 4122 (uuid), 5321 (email), 1123 (hostname), 4291 (ipv6),
// 3986 (uri).
constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date-time", SLUICE_DATE "T" SLUICE_TIME},
    {"date", SLUICE_DATE},
    {"time", SLUICE_TIME},
    {"duration",
     "P([0-9]{1,4}W|[0-9]{1,4}Y([0-9]{1,2}M([0-9]{1,3}D)?)?|[0-9]{1,4}M([0-9]{1,3}D)?|[0-9]{1,4}D"
     "|([0-9]{1,4}D)?T([0-9]{1,4}H([0-9]{1,2}M([0-9]{1,2}S)?)?|[0-9]{1,4}M([0-9]{1,2}S)?"
     "|[0-9]{1,4}S))"},
    {"uuid", "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
    {"email", "[a-zA-Z0-9_+-]{1,32}(\\.[a-zA-Z0-9_+-]{1,31})?@" SLUICE_HOST},
    {"hostname", SLUICE_HOST},
    {"ipv4", SLUICE_IPV4},
    {"ipv6", "(" SLUICE_HEX ":){7}" SLUICE_HEX "|::(" SLUICE_HEX "(:" SLUICE_HEX "){0,5})?"
             "|" SLUICE_HEX "::(" SLUICE_HEX "(:" SLUICE_HEX "){0,4})?"
             "|" SLUICE_HEX "(:" SLUICE_HEX ")::(" SLUICE_HEX "(:" SLUICE_HEX "){0,3})?"},
    {"uri",
     "[a-z][a-z0-9+.-]{0,20}://[a-zA-Z0-9._~:@-]{1,253}"
     "(/[a-zA-Z0-9._~!$&'()*+,;=:@-]*)*(\\?[a-zA-Z0-9._~!$&'()*+,;=:@/?-]*)?"
     "(#[a-zA-Z0-9._~!$&'()*+,;=:@/?-]*)?"},
};

}  // namespace

std::string_view format_pattern(std::string_view format) {
  for (const auto& [name, pattern] : kFormats) {
    if (name == format) return pattern;
  }
  return {};
}

std::string format_names() {
  std::string names;
  for (const auto& entry : kFormats)
    names += (names.empty() ? "" : ", ") + std::string(entry.first);
  return names;
}

}  // namespace sluice
