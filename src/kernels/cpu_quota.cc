#include "kernels/cpu_quota.h"

#include <fstream>

namespace sluice {
namespace {

// quota / period of one group, 0 if it has none.
double group_quota(const std::string& folder, bool version2) {
  double quota = 0, period = 0;
  if (version2) {
    std::ifstream file(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    if (!(file >> quota >> period)) return 0;
  } else {
    std::ifstream quota_file(folder + "/cpu.cfs_quota_us");  // -1: none
    std::ifstream period_file(folder + "/cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

double cgroup_cpu_quota(const std::string& process_cgroups, const std::string& mount) {
  double smallest = 0;
  std::ifstream file(process_cgroups);
  std::string line;
  while (std::getline(file, line)) {  // "hierarchy:controllers:path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first, second - first + 1);  // ":cpu,cpuacct:"
    controllers.front() = controllers.back() = ',';
    const bool version2 = controllers == ",,";
    if (!version2 && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string root = version2 ? mount : mount + "/cpu";
    // Inside a container the path may not exist below the mount; its root then is our group.
    std::string path = line.substr(second + 1);
    while (true) {
      const double quota = group_quota(root + path, version2);
      if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return smallest;
}

}  // namespace sluice
