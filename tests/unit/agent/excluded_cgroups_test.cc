// SPDX-License-Identifier: Apache-2.0
#include "agent/excluded_cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <set>
#include <vector>

#include "base/clock.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Ids = std::vector<uint64_t>;

// A kernel with room for two.
class ExcludedCgroupsTest : public testing::Test {
 protected:
  const Clock clock_{};
  Log log_{clock_, Log::kQuiet,
           std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::null_sink_mt>())};
  std::set<uint64_t> denied_;
  int denials_ = 0;
  ExcludedCgroups excluded_{[this](uint64_t cgroup) -> Result<void> {
                              if (denied_.size() == 2) {
                                return Fail(ErrorCode::kExhausted, "2 cgroups are denied already");
                              }
                              denied_.insert(cgroup);
                              ++denials_;
                              return {};
                            },
                            [this](uint64_t cgroup) { denied_.erase(cgroup); }, log_};
};

TEST_F(ExcludedCgroupsTest, DeniesWhatComesAndAllowsWhatGoes) {
  excluded_.Exclude(Ids{1}, Ids{2});
  EXPECT_THAT(denied_, ElementsAre(1, 2));
  excluded_.Exclude(Ids{}, Ids{3, 2});
  EXPECT_THAT(denied_, ElementsAre(2, 3));
  excluded_.Exclude(Ids{3}, Ids{2});
  EXPECT_EQ(denials_, 3) << "each once";
  excluded_.Exclude({}, {});
  EXPECT_THAT(denied_, IsEmpty());
}

TEST_F(ExcludedCgroupsTest, PrefersThoseThatAreNamedAndTriesTheOthersAgain) {
  excluded_.Exclude(Ids{8, 9}, Ids{1, 2});
  EXPECT_THAT(denied_, ElementsAre(8, 9));
  excluded_.Exclude(Ids{9}, Ids{1, 2});
  EXPECT_THAT(denied_, ElementsAre(1, 9));
}

}  // namespace
}  // namespace pyrometer
