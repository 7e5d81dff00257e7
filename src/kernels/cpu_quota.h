// How many CPUs the control groups of this process allow.
#pragma once

#include <string>

namespace sluice {

/// CPUs that the quotas allow, as a real number; 0 if there is no quota. `process_cgroups`: a file
/// like /proc/self/cgroup; `mount`: where the hierarchies are mounted, e.g. /sys/fs/cgroup. Reads
/// version 2 (cpu.max) and version 1 (cpu/cpu.cfs_quota_us); the group and its ancestors count.
double cgroup_cpu_quota(const std::string& process_cgroups, const std::string& mount);

}  // namespace sluice
