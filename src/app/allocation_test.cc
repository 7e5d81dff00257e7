// A decode step of one sequence allocates nothing, whichever thread it runs on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/engine.h"
#include "models/model.h"
#include "pipeline/pipeline.h"

namespace {

std::atomic<int64_t> n_allocations{0};

void* counted(size_t size, size_t alignment) {
  ++n_allocations;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

/// Not inlined, or the compiler warns of memory from `new` that is freed.
[[gnu::noinline]] void give_back(void* p) noexcept { std::free(p); }

}  // namespace

void* operator new(size_t size) { return counted(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return counted(size, size_t(alignment));
}
// Or a sanitizer's own would meet the deletes below.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(size);
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { give_back(p); }

namespace sluice {
namespace {

/// Allocations during the decode steps of the second of two equal requests: the first sets up what
/// later ones use again.
int64_t allocations(const char* folder, bool i8, int n_stages, const SamplingParams& sampling) {
  const std::filesystem::path path = std::filesystem::path(SLUICE_GOLDEN_DIR) / folder;
  const auto checkpoint = open_checkpoint(path);
  auto model = make_model(*checkpoint);
  const int vocab = int(model->vocab);
  const Plan plan = split_by_cost(std::vector<double>(model->blocks.size() + 1, 1.0), n_stages);
  Pipeline pipeline(*checkpoint, std::move(model), plan,
                    {.i8 = i8,
                     .cache_f16 = i8,
                     .pools = {.n_pages = 8, .n_state_slots = 16},
                     .threads = 2,
                     .default_cores = {}});
  EngineOptions options;
  options.vocab_size = vocab;
  options.speculation = Speculation::kOff;  // a longer guess than any before makes room for itself
  Engine engine(pipeline, options);
  int64_t begin = 0, end = 0;
  for (int round = 0; round < 2; ++round) {
    Request request;
    request.prompt = {1, 2, 3, 1, 2, 3, 1, 2};
    request.max_tokens = 120;
    request.sampling = sampling;
    int n = 0;
    request.sink = [&](const TokenEvent& event) {
      if (++n == 2) begin = n_allocations;  // the first comes of the prompt
      if (event.finish == FinishReason::kNone) end = n_allocations;
      return true;
    };
    engine.submit(std::move(request));
    while (engine.step(0)) {
    }
    EXPECT_EQ(n, 120);
  }
  return end - begin;
}

TEST(Decode, AllocatesNothing) {
  SamplingParams greedy, drawn;
  greedy.temperature = 0;
  drawn.top_k = 20;
  drawn.top_p = 0.9f;
  drawn.repetition_penalty = 1.1f;
  for (const char* folder : {"llama", "qwen3-moe", "granite-4-hybrid"}) {
    SCOPED_TRACE(folder);
    for (const bool i8 : {false, true}) {
      for (const int n_stages : {1, 3}) {
        EXPECT_EQ(allocations(folder, i8, n_stages, greedy), 0);
        EXPECT_EQ(allocations(folder, i8, n_stages, drawn), 0);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
