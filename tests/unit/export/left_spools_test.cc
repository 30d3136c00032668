// SPDX-License-Identifier: Apache-2.0
#include "export/left_spools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "export/spool_directory.h"
#include "pyrometer/sink.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

class LeftSpoolsTest : public testing::Test {
 protected:
  // A spool of the windows 1 and 2, the first of which was written `age` ago.
  void Leave(const std::string& name, std::chrono::hours age) const {
    const Result<SpoolDirectory> spool = SpoolDirectory::Open(tree_.Path(name));
    ASSERT_TRUE(spool.has_value());
    const Parcel parcel;
    const Parcel* const parcels[] = {&parcel};
    for (const uint64_t number : {1, 2}) ASSERT_TRUE(spool->Write(number, parcels).has_value());
    const std::string first = tree_.Path(name + "/0000000000000001.parcels");
    std::filesystem::last_write_time(first, std::filesystem::file_time_type::clock::now() - age);
  }
  std::vector<LeftSpool> Sweep(const std::vector<std::string>& kept, hours max_age = hours(24)) {
    return SweepLeftSpools(tree_.Path(), kept, max_age);
  }

  TemporaryTree tree_;
};

TEST_F(LeftSpoolsTest, LosesWhatIsTooOld) {
  Leave("gone", hours(25));
  const std::vector<LeftSpool> left = Sweep({});
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left[0].name, "gone");
  EXPECT_EQ(left[0].removed, 1);
  EXPECT_EQ(left[0].waiting, 1);
  EXPECT_THAT(*SpoolDirectory::Open(tree_.Path("gone"))->List(), ElementsAre(2));
}

TEST_F(LeftSpoolsTest, GoesWhenItIsEmpty) {
  Leave("gone", hours(25));
  EXPECT_THAT(Sweep({}, hours(-1)), ElementsAre(Field(&LeftSpool::removed, 2)));
  EXPECT_FALSE(std::filesystem::exists(tree_.Path("gone")));
}

TEST_F(LeftSpoolsTest, IsNoneThatIsInUse) {
  Leave("kept", hours(25));
  Leave("locked", hours(25));
  const Result<SpoolDirectory> locked = SpoolDirectory::Open(tree_.Path("locked"));
  EXPECT_THAT(Sweep({"kept"}), IsEmpty());
  EXPECT_THAT(*locked->List(), ElementsAre(1, 2));
}

TEST_F(LeftSpoolsTest, IsNoForeignDirectory) {
  tree_.File("foreign/0000000000000001.parcels", "");
  std::filesystem::create_directory_symlink(tree_.Path("foreign"), tree_.Path("link"));
  EXPECT_THAT(Sweep({}, hours(-1)), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(tree_.Path("foreign/0000000000000001.parcels")));
  EXPECT_THAT(SweepLeftSpools(tree_.Path("none"), {}, hours(1)), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
