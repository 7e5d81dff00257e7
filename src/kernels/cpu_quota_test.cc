#include "kernels/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/thread_pool.h"

namespace sluice {
namespace {

class CpuQuota : public testing::Test {
 protected:
  CpuQuota() : root_(testing::TempDir() + "sluice_cgroup") {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~CpuQuota() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  double quota(const std::string& cgroups) {
    write("/self", cgroups);
    return cgroup_cpu_quota(root_ + "/self", root_);
  }

  std::string root_;
};

TEST_F(CpuQuota, Version2) {
  write("/a/b/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota("0::/a/b\n"), 1.5);
  write("/a/cpu.max", "100000 100000\n");
  EXPECT_DOUBLE_EQ(quota("0::/a/b\n"), 1) << "an ancestor counts";
  write("/a/cpu.max", "max 100000\n");
  EXPECT_DOUBLE_EQ(quota("0::/a/b\n"), 1.5);
}

TEST_F(CpuQuota, Version1) {
  write("/cpu/a/cpu.cfs_quota_us", "400000\n");
  write("/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota("4:cpuset:/x\n3:cpu,cpuacct:/a\n"), 4);
  EXPECT_DOUBLE_EQ(quota("4:cpuset:/a\n"), 0) << "another controller";
  write("/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_DOUBLE_EQ(quota("3:cpu:/a\n"), 0);
}

TEST_F(CpuQuota, PathOfAnotherNamespaceFallsBackToTheRoot) {
  write("/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(quota("0::/../somewhere/else\n"), 2);
}

TEST_F(CpuQuota, NothingReadable) {
  EXPECT_EQ(quota(""), 0);
  EXPECT_EQ(quota("nonsense\n0:\n"), 0);
  EXPECT_EQ(cgroup_cpu_quota(root_ + "/absent", root_), 0);
}

TEST(UsableCores, AtLeastOneAndNotMoreThanTheMask) {
  const int n_cores = int(usable_cores().size());
  EXPECT_GE(n_cores, 1);
  EXPECT_GE(usable_cpu_quota(), 1);
  EXPECT_LE(usable_cpu_quota(), n_cores);
}

}  // namespace
}  // namespace sluice
