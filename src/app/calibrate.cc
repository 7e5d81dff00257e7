// sluice calibrate: what the operations of a model take on this machine.
#include "app/calibrate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <span>
#include <thread>

#include "app/bandwidth.h"
#include "app/commands.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"
#include "cache/storage.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "kernels/kernels.h"
#include "kernels/random_matrix.h"
#include "pipeline/ring.h"
#include "plan/sim.h"

namespace sluice {
namespace {

constexpr int64_t kCols = 768, kRows = 1536;  // about half a megabyte in 4 bits
constexpr int64_t kFewRows = 256;
constexpr double kLeastUs = 2000;  // of one measurement
constexpr double kMostWork = 2e9;  // rows x bytes: many rows compute, wherever the bytes are
constexpr int kWarmUps = 3;        // until a cache has made up its mind what to keep
constexpr double kHot = 2e6;       // bytes that every cache holds
constexpr double kCold = 100e6;    // bytes that only the last one holds

/// Microseconds per call.
template <typename Work>
double time_us(Work&& work) {
  work();
  const double start = now_us();
  int n = 0;
  double us = 0;
  for (; us < kLeastUs; us = now_us() - start, ++n) work();
  return us / n;
}

/// Through two measured points; never falling, never negative.
HostLine line_through(double units_a, double us_a, double units_b, double us_b) {
  HostLine line;
  line.per_unit_us = std::max(0.0, (us_b - us_a) / (units_b - units_a));
  line.fixed_us = std::max(0.0, us_a - line.per_unit_us * units_a);
  return line;
}

/// As many copies of one random matrix as fill `bytes`, at least one.
class Matrices {
 public:
  Matrices(DType type, int64_t rows, double bytes) {
    RandomMatrix random(type, kPanelRows, kCols, 1);
    const PackedCopy panel(random.source());
    const size_t panel_bytes = panel.matrix().panel_bytes;
    const size_t matrix_bytes = panel_bytes * size_t(rows / kPanelRows);
    const size_t n = std::max<size_t>(1, size_t(bytes) / matrix_bytes);
    memory_ = PageMemory(n * matrix_bytes);
    for (size_t at = 0; at < memory_.bytes(); at += panel_bytes) {
      std::memcpy(memory_.data() + at, panel.matrix().data, panel_bytes);
    }
    for (size_t i = 0; i < n; ++i) {
      all_.push_back({.dtype = type,
                      .rows = rows,
                      .cols = kCols,
                      .data = memory_.data() + i * matrix_bytes,
                      .panel_bytes = panel_bytes});
    }
  }

  const std::vector<PackedMatrix>& all() const { return all_; }
  double matrix_mb() const { return double(all_.front().bytes()) / 1e6; }

 private:
  PageMemory memory_;
  std::vector<PackedMatrix> all_;
};

class Meter {
 public:
  explicit Meter(const CalibrateOptions& options)
      : options_(options),
        pool_(options.threads, options.cores),
        pass_(kernels(), pool_, options.i8) {}

  ThreadPool& pool() { return pool_; }

  /// Microseconds of one matmul with rows that are quantised already, as norms leave them.
  double matmul_us(const Matrices& matrices, int rows) {
    const Arena::Mark mark = pass_.arena().mark();
    const std::vector<float> ones(size_t(kCols), 1.0f);
    const Tensor x = pass_.rms_norm(input(rows, kCols), ones, 1e-5f);
    const std::vector<PackedMatrix>& all = matrices.all();
    const auto most = size_t(kMostWork / (rows * double(all.front().bytes())));
    const std::span<const PackedMatrix> some(all.data(), std::clamp<size_t>(most, 1, all.size()));
    const double us = time_us([&] {
      for (const PackedMatrix& w : some) {
        const Arena::Mark inner = pass_.arena().mark();
        pass_.matmul(x, w);
        pass_.arena().release(inner);
      }
    });
    pass_.arena().release(mark);
    return us / double(some.size());
  }

  HostLine norm(int few_rows, int many_rows) {
    const std::vector<float> weight(size_t(kCols), 1.0f);
    const auto measure = [&](int rows) {
      const Arena::Mark mark = pass_.arena().mark();
      const Tensor x = input(rows, kCols);
      const double us = time_us([&] {
        const Arena::Mark inner = pass_.arena().mark();
        pass_.rms_norm(x, weight, 1e-5f);
        pass_.arena().release(inner);
      });
      pass_.arena().release(mark);
      return us;
    };
    return line_through(double(few_rows * kCols), measure(few_rows), double(many_rows * kCols),
                        measure(many_rows));
  }

  /// `n` rows of one prompt, or of as many sequences.
  double attend_us(int n, int context, bool is_prompt) {
    const AttentionShape shape{
        .n_heads = 9, .n_kv_heads = 3, .head_dim = 64, .v_head_dim = 64, .scale = 0.125f};
    const CacheSpec spec{.kind = CacheKind::kPagedKv,
                         .n_kv_heads = shape.n_kv_heads,
                         .head_dim = shape.head_dim,
                         .v_head_dim = shape.v_head_dim};
    const int n_pages = (context + n) / kPageTokens + 1, n_sequences = is_prompt ? 1 : n;
    // As many layers as have left the nearest caches when the first one's turn comes again.
    std::vector<CacheStorage> layers;
    for (double bytes = 0; bytes < kCold; bytes += double(layers.back().bytes())) {
      layers.emplace_back(spec, CachePools{.n_pages = n_pages * n_sequences}, options_.cache_f16);
      // What was never written would be one page of zeros that every cache holds.
      for (int p = 1; p < n_pages * n_sequences; ++p) layers.back().copy_page(0, p);
    }
    std::vector<std::vector<int32_t>> pages(static_cast<size_t>(n_sequences));
    std::vector<int32_t> positions;
    std::vector<Segment> segments;
    for (int s = 0; s < n_sequences; ++s) {
      for (int p = 0; p < n_pages; ++p) pages[size_t(s)].push_back(s * n_pages + p);
      const int n_rows = n / n_sequences;
      segments.push_back({.first_row = int32_t(positions.size()),
                          .n_rows = n_rows,
                          .first_position = context,
                          .pages = pages[size_t(s)],
                          .state_save = {}});
      for (int i = 0; i < n_rows; ++i) positions.push_back(context + i);
    }
    pass_.begin(positions, segments);
    const Arena::Mark mark = pass_.arena().mark();
    const Tensor q = input(n, 9 * 64), k = input(n, 3 * 64), v = input(n, 3 * 64);
    const double us = time_us([&] {
      for (const CacheStorage& layer : layers) {
        pass_.bind(layer.kv(), {});
        const Arena::Mark inner = pass_.arena().mark();
        pass_.attend(q, k, v, shape);
        pass_.arena().release(inner);
      }
    });
    pass_.arena().release(mark);
    pass_.begin({}, {});
    return us / double(layers.size());
  }

  /// One row and eight tell what a row takes apart from what it sees.
  void attend_decode(HostProfile& host) {
    const HostLine one = attend(1, /*is_prompt=*/false), eight = attend(8, /*is_prompt=*/false);
    host.attend_decode.per_unit_us = eight.per_unit_us;
    host.attend_row_us = std::max(0.0, (eight.fixed_us - one.fixed_us) / 7);
    host.attend_decode.fixed_us = std::max(0.0, one.fixed_us - host.attend_row_us);
  }

  HostLine attend(int n, bool is_prompt) {
    const auto units = [&](int context) {
      return 9.0 * 64 * n * (context + (is_prompt ? (n + 1) / 2.0 : 1.0));
    };
    return line_through(units(64), attend_us(n, 64, is_prompt), units(2048),
                        attend_us(n, 2048, is_prompt));
  }

  HostLine state() {
    const Mamba2Shape shape{
        .n_heads = 16, .head_dim = 64, .d_state = 128, .n_groups = 1, .d_conv = 4};
    const std::vector<float> ones(size_t(shape.conv_dim()) * 4, 0.5f);
    const std::vector<float> decay(16, -1.0f);
    PageMemory slots(size_t(shape.state_floats()) * 2 * sizeof(float));
    const auto measure = [&](int n) {
      std::vector<int32_t> positions, save(size_t(n), -1);
      for (int i = 0; i < n; ++i) positions.push_back(i);
      save.back() = 1;
      const Segment segments[] = {{.first_row = 0,
                                   .n_rows = n,
                                   .first_position = 0,
                                   .pages = {},
                                   .state_load = 0,
                                   .state_save = save}};
      pass_.begin(positions, segments);
      pass_.bind({}, {reinterpret_cast<float*>(slots.data()), shape.state_floats()});
      const Arena::Mark mark = pass_.arena().mark();
      const Tensor x = input(n, shape.d_inner() + shape.conv_dim() + shape.n_heads);
      const double us = time_us([&] {
        const Arena::Mark inner = pass_.arena().mark();
        pass_.mamba2(x, shape,
                     {ones.data(), ones.data(), decay.data(), ones.data(), ones.data(), 0, 1e9f});
        pass_.arena().release(inner);
      });
      pass_.arena().release(mark);
      pass_.begin({}, {});
      return us;
    };
    const double floats = double(shape.state_floats());
    return line_through(floats, measure(1), 16 * floats, measure(16));
  }

  double join_us() {
    return time_us([&] { pool_.parallel_for(pool_.size(), 1, [](int64_t, int64_t, int) {}); });
  }

 private:
  Tensor input(int64_t rows, int64_t dim) {
    const Tensor x = pass_.tensor(rows, dim);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < dim; ++i) x.row(r)[i] = float((r * 31 + i * 17) % 64) / 64 - 0.5f;
    }
    return x;
  }

  const CalibrateOptions& options_;
  ThreadPool pool_;
  Pass pass_;
};

HostLine measure_sampler() {
  const auto measure = [](int vocab) {
    std::vector<float> logits(static_cast<size_t>(vocab));
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = float(i * 7919 % 1000) / 100;
    Batch batch;
    SamplingParams greedy;
    greedy.temperature = 0;
    batch.rows.emplace_back().sample = true;
    BatchSequence& sequence = batch.sequences.emplace_back();
    sequence.n_rows = 1;
    sequence.sampling = std::make_shared<SamplingParams>(greedy);
    Sampler sampler;
    return time_us([&] { sampler.run(batch, 0, logits); });
  };
  return line_through(1000, measure(1000), 100000, measure(100000));
}

/// The engine over stages that take no time, on the real clock.
HostLine measure_scheduler() {
  const auto measure = [](int users) {
    class RealClock : public LoadClock {
      double now_us() const override { return sluice::now_us(); }
      void wait_until(double) override {}
    } clock;
    WorkloadOptions load;
    load.requests = load.users = users;
    load.prompt = 32;
    load.output = 512;
    Workload workload(load);
    SimOptions options;
    options.engine.max_sequences = users;
    options.engine.speculation = Speculation::kOff;
    options.pools.n_pages = 20 * users;
    const SimRoute route = SimRoute::row({"none"});
    const FlatCost none;
    SimExecutor executor(route, none, options.pools, [](RequestId, int) { return 1; });
    const SimReport report = serve_load(executor, clock, workload, options);
    return report.tpot_ms.p50 * 1e3;
  };
  return line_through(1, measure(1), 16, measure(16));
}

/// Half of there and back between two threads, as stages hand frames on.
double measure_hop() {
  constexpr int kHops = 20000;
  Doorbell there_bell, back_bell;
  Ring<int> there(1, there_bell), back(1, back_bell);
  const auto pop = [](Ring<int>& ring) {
    for (int item = 0; !ring.pop(item);) std::this_thread::yield();
  };
  std::thread stage([&] {
    for (int i = 0; i < kHops; ++i) {
      pop(there);
      back.push(0);
    }
  });
  const double start = now_us();
  for (int i = 0; i < kHops; ++i) {
    there.push(0);
    pop(back);
  }
  const double us = (now_us() - start) / kHops / 2;
  stage.join();
  return us;
}

void measure_matmuls(Meter& meter, const CalibrateOptions& options, HostProfile& host,
                     const std::function<void(double)>& progress) {
  constexpr int kRowCounts[] = {1, 2, 3, 4, 6, 8, 16, 32, 64, 256};
  double n_done = 0;
  for (const DType type : options.types) {
    const Matrices few(type, kFewRows, kHot / 8), hot(type, kRows, kHot);
    std::vector<double> op_us;
    for (const int rows : kRowCounts) {
      // What does not grow with the matrix.
      const double small_us = meter.matmul_us(few, rows), large_us = meter.matmul_us(hot, rows);
      const double per_row = (large_us - small_us) / double(kRows - kFewRows);
      op_us.push_back(std::clamp(small_us - per_row * kFewRows, 0.0, small_us));
    }
    for (const double footprint : options.footprints) {
      const Matrices matrices(type, kRows, footprint);
      for (int i = 0; i < kWarmUps; ++i) meter.matmul_us(matrices, 1);
      for (size_t i = 0; i < std::size(kRowCounts); ++i) {
        const double us = meter.matmul_us(matrices, kRowCounts[i]);
        const double rest_us = std::max(us - op_us[i], us / 100);
        host.matmul.push_back({.type = info(type).name,
                               .footprint = footprint,
                               .rows = kRowCounts[i],
                               .op_us = us - rest_us,
                               .us_per_mb = rest_us / matrices.matrix_mb()});
      }
      n_done += 1;
      progress(n_done / double(options.types.size() * options.footprints.size()));
    }
  }
}

}  // namespace

HostProfile calibrate_once(const CalibrateOptions& options,
                           const std::function<void(double)>& progress) {
  HostProfile host;
  host.isa = kernels().isa;
  host.threads = options.threads;
  host.i8 = options.i8;
  host.cache_f16 = options.cache_f16;
  host.scheduler = measure_scheduler();
  host.sample = measure_sampler();
  host.hop_us = measure_hop();
  Meter meter(options);
  host.join_us = meter.join_us();
  host.norm = meter.norm(1, 8);
  host.norm_shared = meter.norm(64, 256);
  meter.attend_decode(host);
  host.attend_prompt = meter.attend(64, /*is_prompt=*/true);
  host.state = meter.state();
  measure_matmuls(meter, options, host, progress);
  return host;
}

HostProfile calibrate(const CalibrateOptions& options,
                      const std::function<void(double)>& progress) {
  std::vector<HostProfile> rounds;
  for (int r = 0; r < kCalibrationRounds; ++r) {
    rounds.push_back(calibrate_once(options, [&](double share) {
      if (progress) progress((r + share) / kCalibrationRounds);
    }));
  }
  HostProfile host = median_of(rounds);
  Meter meter(options);
  for (const double footprint : options.footprints) {
    host.read_gb_s.emplace_back(footprint, measure_read_gb_s(meter.pool(), int64_t(footprint)));
  }
  return host;
}

int calibrate_command(int argc, char** argv) {
  std::string out, types = "F16,Q8_0,Q4_0,Q4_1,Q4_K,Q6_K";
  int threads = 0;
  bool f32 = false, quick = false, quiet = false;
  CLI::App app;
  set_help(app, "calibrate", "[-o host.json] [flags]",
           "Measures this machine for `sluice simulate --host`: the bandwidth of reading for "
           "several footprints, multiplying by matrices of several types for 1 to 256 rows, "
           "attention, norms, recurrent states, joining threads, handing a frame to another core, "
           "sampling and the scheduler. Takes a minute on a quiet machine; the middle of several "
           "rounds counts, so "
           "that a moment in which the machine is busy does not.",
           {"sluice calibrate -o host.json", "sluice calibrate --types Q4_1,Q8_0 --threads 1"});
  add_name(app, "-o,--out", "FILE", out, "write the profile there (default: standard output)")
      ->group("Output");
  add_text(app, "--types", "T,T,...", types, "matrix types (default " + types + ")")->group("Work");
  add_integer(app, "-t,--threads", threads, 1, 1024, "default: what the system allows")
      ->group("Work");
  add_switch(app, "--f32", f32, "exact activations and an f32 cache, as --compute f32")
      ->group("Work");
  add_switch(app, "--quick", quick, "small footprints only: right for models of a few megabytes")
      ->group("Work");
  add_switch(app, "-q,--quiet", quiet, "no progress on standard error")->group("Output");
  if (!parse_flags(app, argc, argv)) return kOk;
  if (!out.empty()) require_writable(out);
  CalibrateOptions options;
  options.threads = threads > 0 ? threads : usable_cpu_quota();
  options.cores = usable_cores();
  if (options.cores.size() != size_t(options.threads)) options.cores.clear();
  options.i8 = options.cache_f16 = !f32;
  options.types = parse_types(types);
  options.footprints = {kHot};
  if (!quick) options.footprints.insert(options.footprints.end(), {25e6, 100e6, 400e6});
  Progress progress("calibrate", quiet);
  const HostProfile host = calibrate(options, [&](double share) { progress.update(share); });
  progress.clear();
  const OrderedJson json = host_to_json(host);
  if (out.empty()) {
    print_json(json);
    return kOk;
  }
  write_file(out, json.dump(1) + '\n');
  return kOk;
}

std::vector<DType> parse_types(const std::string& list) {
  std::vector<DType> types;
  for (size_t start = 0; start <= list.size();) {
    const size_t comma = std::min(list.find(',', start), list.size());
    const std::string name = list.substr(start, comma - start);
    const auto all = all_dtypes();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const DTypeInfo& t) { return t.name == name; });
    if (found == all.end() || !has_packed_kernel(found->dtype)) {
      throw UsageError(fmt::format("--types: expected types like Q4_1,F16, got \"{}\"", name));
    }
    types.push_back(found->dtype);
    start = comma + 1;
  }
  return types;
}

}  // namespace sluice
