// Every architecture against its expected logits, and the promise that a sequence's logits are the
// same bits under any chunking, threads, stages, batch mates and cache placement.
#include "pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "base/error.h"
#include "weights/safetensors.h"

namespace sluice {
namespace {

const std::filesystem::path kGolden = SLUICE_GOLDEN_DIR;

struct GoldenCase {
  std::string architecture;  // empty: taken from the file
  std::filesystem::path model, expected;
};

void PrintTo(const GoldenCase& c, std::ostream* out) { *out << c.model.string(); }

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  const auto add = [&](const char* architecture, const std::filesystem::path& folder) {
    if (std::filesystem::exists(folder / "model.safetensors")) {
      cases.push_back({architecture, folder, folder / "expected.safetensors"});
    }
    if (!std::filesystem::is_directory(folder)) return;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".gguf") continue;
      const auto special =
          folder / ("expected" + entry.path().stem().string().substr(5) + ".safetensors");
      cases.push_back(
          {architecture, entry.path(),
           std::filesystem::exists(special) ? special : folder / "expected.safetensors"});
    }
  };
#define MODEL(name, make, folder) add(name, kGolden / folder);
#include "models/models.inc"
#undef MODEL
  add("", kGolden / "llama-tied");
  add("", kGolden / "llama-kquants");
  add("", kGolden / "granite-4-dense");
  return cases;
}

struct Expected {
  std::vector<int32_t> prompt, greedy;
  std::vector<float> logits, greedy_logits;
};

template <typename T>
std::vector<T> values(const SafetensorsFile& file, const char* name) {
  const TensorView* tensor = file.tensor(name);
  std::vector<T> out(size_t(tensor->elements()));
  std::memcpy(out.data(), tensor->data, tensor->bytes);
  return out;
}

Expected read_expected(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  return {values<int32_t>(file, "prompt"), values<int32_t>(file, "greedy"),
          values<float>(file, "logits"), values<float>(file, "greedy_logits")};
}

double nmse(std::span<const float> got, std::span<const float> want) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (double(got[i]) - want[i]) * (double(got[i]) - want[i]);
    norm += double(want[i]) * want[i];
  }
  return error / norm;
}

/// The values of a matrix, (rows, cols).
std::vector<float> floats(const MatrixSource& source) {
  std::vector<float> all(size_t(source.rows * source.cols));
  for (int64_t row = 0; row < source.rows; ++row) {
    decode_to_f32(source.dtype, source.data + size_t(row) * source.row_bytes, source.cols,
                  all.data() + row * source.cols);
  }
  return all;
}

struct Arrangement {
  int stages = 1, threads = 1;
  bool i8 = false;
  bool alternate = false;  // mixers on one stage, feed-forwards on another
};

constexpr int kPages = 24, kSlots = 12;

std::unique_ptr<Pipeline> make_pipeline(const std::filesystem::path& path, const Arrangement& how) {
  const auto checkpoint = open_checkpoint(path);
  auto model = make_model(*checkpoint);
  const size_t n_blocks = model->blocks.size();
  Plan plan = split_by_cost(std::vector<double>(n_blocks + 1, 1.0), how.stages);
  if (how.alternate) {
    plan.stages = {{"mixers", {}, false, {}}, {"feed-forwards", {}, true, {}}};
    for (int b = 0; b < int(n_blocks); ++b) plan.stages[size_t(b % 2)].blocks.push_back({b, b + 1});
  }
  PipelineOptions options{.i8 = how.i8,
                          .cache_f16 = how.i8,
                          .pools = {.n_pages = kPages, .n_state_slots = kSlots},
                          .threads = how.threads,
                          .default_cores = {}};
  return std::make_unique<Pipeline>(*checkpoint, std::move(model), plan, options);
}

/// One sequence fed to a pipeline by hand: scattered pages, a slot of its own.
struct Feeder {
  Pipeline& pipeline;
  std::vector<int32_t> pages;
  int32_t slot = 0;
  std::shared_ptr<SamplingParams> sampling = std::make_shared<SamplingParams>();
  int n_done = 0;
  bool recurrent_started = false;

  /// Appends rows for `tokens` to the batch; all rows want logits and hidden states.
  void add(Batch& batch, std::span<const int32_t> tokens, int32_t save = -2) {
    BatchSequence s{.id = 1,
                    .first_row = int32_t(batch.rows.size()),
                    .n_rows = int32_t(tokens.size()),
                    .pages = pages,
                    .state_load = recurrent_started ? slot : -1,
                    .sampling = sampling,
                    .history = {},
                    .n_prompt = 0};
    for (size_t i = 0; i < tokens.size(); ++i) {
      BatchRow row{
          .token = tokens[i], .position = n_done++, .sequence = int32_t(batch.sequences.size())};
      row.logits = row.hidden = true;
      if (i + 1 == tokens.size()) row.state_save = save == -2 ? slot : save;
      batch.rows.push_back(row);
    }
    recurrent_started = true;
    batch.sequences.push_back(std::move(s));
  }
};

/// What comes of tokens.
struct Vectors {
  std::vector<float> logits;  // (rows, vocab)
  std::vector<float> hidden;  // (rows, dim)
  bool operator==(const Vectors&) const = default;
};

/// Adds rows `first` to `first` + n of `from`.
void append_rows(std::vector<float>& to, const std::vector<float>& from, size_t first, size_t n,
                 int64_t width) {
  const auto begin = from.begin() + long(first) * width;
  to.insert(to.end(), begin, begin + long(n) * width);
}

/// Of `tokens` in chunks of `chunk`, next to `mates` other sequences.
Vectors run(Pipeline& pipeline, const std::vector<int32_t>& tokens, int chunk, int mates = 0,
            unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<int32_t> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), random);
  const auto take = [&](size_t n) {
    std::vector<int32_t> some(pages.end() - long(n), pages.end());
    pages.resize(pages.size() - n);
    return some;
  };
  const size_t n_pages = (tokens.size() + 31) / 32;
  Feeder main{.pipeline = pipeline, .pages = take(n_pages), .slot = 3};
  std::vector<Feeder> others;
  for (int i = 0; i < mates; ++i) {
    others.push_back({.pipeline = pipeline, .pages = take(n_pages + 1), .slot = int32_t(4 + i)});
  }
  Vectors got;
  const size_t vocab = size_t(pipeline.model().vocab);
  for (size_t at = 0; at < tokens.size(); at += size_t(chunk)) {
    const size_t n = std::min(size_t(chunk), tokens.size() - at);
    Batch batch;
    size_t before = 0;
    for (size_t i = 0; i < others.size(); ++i) {
      if (i == others.size() / 2) {
        before = batch.rows.size();
        main.add(batch, std::span(tokens).subspan(at, n));
      }
      const int n_mate = std::min(int(random() % 5 + 1), 64 - others[i].n_done);
      std::vector<int32_t> mate_tokens;
      for (int t = 0; t < n_mate; ++t) mate_tokens.push_back(int32_t(random() % vocab));
      if (n_mate > 0) others[i].add(batch, mate_tokens);
    }
    if (others.empty()) main.add(batch, std::span(tokens).subspan(at, n));
    pipeline.submit(batch);
    Result result;
    pipeline.next(result);
    EXPECT_EQ(result.error, "");
    append_rows(got.logits, result.logits, before, n, pipeline.model().vocab);
    append_rows(got.hidden, result.hidden, before, n, pipeline.model().dim);
  }
  return got;
}

std::vector<int32_t> all_tokens(const Expected& expected) {
  std::vector<int32_t> tokens = expected.prompt;
  tokens.insert(tokens.end(), expected.greedy.begin(), expected.greedy.end() - 1);
  return tokens;
}

class Golden : public testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, LogitsAreTheExpectedOnes) {
  const Expected expected = read_expected(GetParam().expected);
  const auto pipeline = make_pipeline(GetParam().model, {});
  if (!GetParam().architecture.empty() && GetParam().model.extension() != ".gguf") {
    EXPECT_EQ(pipeline->model().architecture, GetParam().architecture);
  }
  const std::vector<float> got = run(*pipeline, all_tokens(expected), 1000).logits;
  EXPECT_LE(nmse(std::span(got).first(expected.logits.size()), expected.logits), 1e-9);
  const size_t vocab = size_t(pipeline->model().vocab);
  EXPECT_LE(nmse(std::span(got).subspan(expected.logits.size() - vocab), expected.greedy_logits),
            1e-9);
}

// An oracle for hidden states: the expected logits are these times the checkpoint's own matrix.
TEST_P(Golden, HiddenStatesTimesTheHeadAreTheLogits) {
  const Expected expected = read_expected(GetParam().expected);
  const auto checkpoint = open_checkpoint(GetParam().model);
  const auto pipeline = make_pipeline(GetParam().model, {});
  const Model& model = pipeline->model();
  const WeightName name{.name = model.tied ? "model.embed_tokens.weight" : "lm_head.weight"};
  const std::vector<float> head = floats(checkpoint->matrix(name, model.vocab, model.dim));
  const std::vector<float> hidden = run(*pipeline, expected.prompt, 1000).hidden;
  ASSERT_EQ(hidden.size(), expected.prompt.size() * size_t(model.dim));
  std::vector<float> logits;
  for (size_t row = 0; row < expected.prompt.size(); ++row) {
    for (size_t token = 0; token < size_t(model.vocab); ++token) {
      double sum = 0;
      for (size_t i = 0; i < size_t(model.dim); ++i) {
        sum += double(hidden[row * size_t(model.dim) + i]) * head[token * size_t(model.dim) + i];
      }
      logits.push_back(float(sum * model.logits_scale));
    }
  }
  EXPECT_LE(nmse(logits, expected.logits), 1e-9);
}

TEST_P(Golden, BitsDoNotDependOnHowTheyAreComputed) {
  const std::vector<int32_t> tokens = all_tokens(read_expected(GetParam().expected));
  for (bool i8 : {false, true}) {
    const auto plain = make_pipeline(GetParam().model, {.i8 = i8});
    const Vectors want = run(*plain, tokens, 1000);
    for (int chunk : {1, 7, 32}) EXPECT_TRUE(run(*plain, tokens, chunk) == want) << chunk;
    for (unsigned seed : {2u, 3u}) {
      EXPECT_TRUE(run(*plain, tokens, 11, 3, seed) == want) << "batch mates, seed " << seed;
    }
    for (Arrangement how : {Arrangement{1, 2}, Arrangement{2, 1}, Arrangement{3, 2},
                            Arrangement{1, 3}, Arrangement{.alternate = true}}) {
      how.i8 = i8;
      const auto other = make_pipeline(GetParam().model, how);
      EXPECT_TRUE(run(*other, tokens, 13) == want)
          << "stages " << how.stages << " threads " << how.threads;
    }
  }
}

// Drafts that are rejected leave no trace: positions are written over and the state is loaded from
// the row that was accepted.
TEST_P(Golden, TrimGoesBackExactly) {
  const std::vector<int32_t> tokens = all_tokens(read_expected(GetParam().expected));
  const auto pipeline = make_pipeline(GetParam().model, {});
  const size_t vocab = size_t(pipeline->model().vocab);
  const std::vector<float> want = run(*pipeline, tokens, 1000).logits;
  Feeder feeder{.pipeline = *pipeline, .pages = {9, 2, 5, 7}, .slot = 0};
  std::vector<float> got;
  const int wrong_by = 17;
  for (size_t at = 0; at < tokens.size(); ++at) {
    Batch batch;
    const int32_t wrong = (tokens[at] + wrong_by) % int32_t(vocab);
    const int32_t rows[] = {tokens[at], wrong, wrong};
    feeder.add(batch, rows, -1);
    batch.rows[0].state_save = int32_t(at % 5 + 1);  // the state after the token that counts
    batch.rows[2].state_save = 8;
    pipeline->submit(batch);
    Result result;
    pipeline->next(result);
    got.insert(got.end(), result.logits.begin(), result.logits.begin() + long(vocab));
    feeder.n_done -= 2;
    feeder.slot = int32_t(at % 5 + 1);
  }
  EXPECT_EQ(got, want);
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(golden_cases()),
                         [](const testing::TestParamInfo<GoldenCase>& info) {
                           std::string name = info.param.model.parent_path().filename().string() +
                                              "_" + info.param.model.filename().string();
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

TEST(Architectures, EachHasAGoldenFolder) {
#define MODEL(name, make, folder) \
  EXPECT_TRUE(std::filesystem::exists(kGolden / folder / "expected.safetensors")) << name;
#include "models/models.inc"
#undef MODEL
}

TEST(Pipeline, StagesOnTheirOwnCoresKeepSeveralBatchesUnderWay) {
  const auto checkpoint = open_checkpoint(kGolden / "llama");
  auto model = make_model(*checkpoint);
  Plan plan = split_by_cost(std::vector<double>(model->blocks.size() + 1, 1.0), 2);
  plan.stages[0].cores = {0};
  plan.stages[1].cores = {1};
  Pipeline pipeline(*checkpoint, std::move(model), plan,
                    {.i8 = false,
                     .cache_f16 = false,
                     .pools = {.n_pages = 8, .n_state_slots = 0},
                     .threads = 1,
                     .default_cores = {}});
  EXPECT_EQ(pipeline.depth(), 2);
  Feeder a{.pipeline = pipeline, .pages = {0}}, b{.pipeline = pipeline, .pages = {1}};
  const int32_t tokens[] = {1, 2, 3};
  std::vector<float> first[2];
  for (int step = 0; step < 3; ++step) {
    for (Feeder* feeder : {&a, &b}) {
      Batch batch{.id = uint64_t(step * 2 + (feeder == &b)),
                  .rows = {},
                  .sequences = {},
                  .page_copies = {},
                  .masks = {}};
      feeder->add(batch, std::span(tokens).subspan(size_t(step), 1));
      pipeline.submit(batch);
    }
    for (int i = 0; i < 2; ++i) {
      Result result;
      pipeline.next(result);
      EXPECT_EQ(result.batch, uint64_t(step * 2 + i));
      first[i] = std::move(result.logits);
    }
    EXPECT_EQ(first[0], first[1]);
  }
}

}  // namespace
}  // namespace sluice
