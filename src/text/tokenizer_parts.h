// What a tokenizer is made of; every loader fills one of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/piece_table.h"
#include "text/pre_tokenizer.h"
#include "text/token_model.h"

namespace sluice {

struct TokenizerParts {
  std::string what;         // the file, for errors
  PieceTable names;         // every token as the vocabulary writes it, added tokens included
  PieceTable model_pieces;  // what the model looks up in texts
  std::vector<AddedToken> added_tokens;
  std::vector<int32_t> control_ids;  // special tokens that texts cannot name
  NormalizerPtr normalizer;          // may be null
  PreTokenizerPtr pre_tokenizer;     // may be null
  TokenModelPtr model;               // refers to model_pieces
  std::vector<DecoderPtr> decoders;
  std::vector<int32_t> prefix_ids, suffix_ids;  // what the post-processor adds
  std::optional<int32_t> bos, eos;
  std::vector<int32_t> end_ids;  // ascending, without duplicates

  AddedTokenMatcher raw_matcher;         // added tokens that are looked for in the text as it is
  AddedTokenMatcher normalized_matcher;  // and in the normalised text
  // Added tokens that are looked for in normalised text are also written as that text.
  std::unordered_map<int32_t, std::string> normalized_names;
  std::vector<bool> special;  // per id

  /// The name that the decoders work on.
  std::string_view decoded_name(int32_t id) const;

  /// Fills the matchers and special from the rest, and adds to end_ids eos and the
  /// special tokens that end a turn by their name. The last thing a loader calls.
  void complete();
};

}  // namespace sluice
