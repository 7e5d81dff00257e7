// How fast this machine's memory can be read: the roof of decoding.
#pragma once

#include <cstdint>

#include "kernels/thread_pool.h"

namespace sluice {

/// Gigabytes (10^9) a second that the threads of `pool` read together from `bytes` of memory, again
/// and again: the best of ten measurements, since whatever disturbs one only makes it slower. Takes
/// about half a second.
double measure_read_gb_s(ThreadPool& pool, int64_t bytes);

}  // namespace sluice
