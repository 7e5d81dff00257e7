// Text as Python sees it: code points over UTF-8, and the operations of `str`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

/// The code point at `position`, which moves past it. The text is valid UTF-8.
char32_t next_code_point(std::string_view text, size_t& position);
/// The code point that ends at `position`, which moves to its start.
char32_t previous_code_point(std::string_view text, size_t& position);
void append_code_point(std::string& out, char32_t c);

bool is_valid_utf8(std::string_view text);
size_t count_code_points(std::string_view text);
/// Byte offset of code point `index`; the end of the text if there are fewer.
size_t byte_offset(std::string_view text, size_t index);

bool is_space(char32_t c);       // str.isspace
bool is_line_break(char32_t c);  // where str.splitlines cuts
bool is_alpha(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_decimal(char32_t c);
bool is_printable(char32_t c);
bool is_cased(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string to_capitalized(std::string_view text);
std::string swap_case(std::string_view text);

/// Cuts code points of `characters` (white space, when null) from the ends.
std::string_view strip(std::string_view text, const std::string* characters = nullptr,
                       bool left = true, bool right = true);

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t limit = -1);
/// A null `separator` splits at runs of white space. `limit` < 0: no limit.
std::vector<std::string_view> split(std::string_view text, const std::string* separator,
                                    int64_t limit);
std::vector<std::string_view> split_from_right(std::string_view text, const std::string* separator,
                                               int64_t limit);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);
/// Occurrences that do not overlap, in the text of `n_code_points`.
size_t count_occurrences(std::string_view text, std::string_view part);

}  // namespace sluice::jinja
