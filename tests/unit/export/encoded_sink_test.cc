// SPDX-License-Identifier: Apache-2.0
#include "export/encoded_sink.h"

#include <gtest/gtest.h>

namespace pyrometer {
namespace {

class StringSink final : public ByteSink {
 public:
  explicit StringSink(std::string& out) : out_(out) {}
  Result<void> Write(std::string_view bytes) override {
    if (bytes.empty()) return Fail(ErrorCode::kInvalid, "nothing to write");
    out_ = bytes;
    return {};
  }

 private:
  std::string& out_;
};

std::string EncodeFrequency(const Profile& profile) {
  return profile.frequency.value == 0 ? "" : std::to_string(profile.frequency.value);
}

TEST(EncodedSink, WritesTheEncodedProfile) {
  std::string written;
  EncodedSink sink(EncodeFrequency, std::make_unique<StringSink>(written));
  Profile profile;
  profile.frequency = Hertz{99};
  EXPECT_TRUE(sink.Send(profile).has_value());
  EXPECT_EQ(written, "99");
}

TEST(EncodedSink, FailsAsTheBytesDo) {
  std::string written;
  EncodedSink sink(EncodeFrequency, std::make_unique<StringSink>(written));
  EXPECT_EQ(sink.Send(Profile()).error().code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace pyrometer
