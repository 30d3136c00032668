// SPDX-License-Identifier: Apache-2.0
// DebuginfoUploader, and with it DebuginfoClient, against a server in this process.
#include "export/debuginfo_uploader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/file_hash.h"
#include "profile/text.h"
#include "tests/unit/export/debuginfo_server.h"
#include "tests/unit/export/grpc_server.h"
#include "tests/unit/export/raw_server.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

// True if `is_so` becomes true within half a minute.
bool Becomes(const std::function<bool()>& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(30);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Files in memory, by what their objects are called in profiles.
class FakeFiles : public ObjectFiles {
 public:
  std::shared_ptr<const UniqueFd> Find(const CodeObject& object,
                                       const std::stop_token& /*stop*/) override {
    const std::lock_guard lock(mutex_);
    ++asked_;
    const auto file = files_.find(ContentIdOf(object));
    return file == files_.end() ? nullptr : file->second;
  }

  void Put(const CodeObject& object, const std::string& bytes) {
    UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
    EXPECT_TRUE(WriteAll(fd.get(), bytes).has_value());
    const std::lock_guard lock(mutex_);
    files_[ContentIdOf(object)] = std::make_shared<const UniqueFd>(std::move(fd));
  }
  void Append(const CodeObject& object) {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(WriteAll(files_.at(ContentIdOf(object))->get(), "more").has_value());
  }
  size_t asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const UniqueFd>> files_;
  size_t asked_ = 0;
};

std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i / 3);
  return bytes;
}

std::string HashText(const std::string& bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  const size_t part = std::min(bytes.size(), kHashedPart);
  return HashOf(all.first(part), all.last(part), bytes.size()).ToHex();
}

std::shared_ptr<CodeObject> WithBuildId(const std::string& path, char id) {
  auto object = MakeObject(path);
  const std::array<std::byte, 4> bytes{std::byte{0xab}, std::byte{0xcd}, std::byte{0xef},
                                       static_cast<std::byte>(id)};
  object->build_id = BuildId(bytes);
  return object;
}

class DebuginfoUploaderTest : public testing::Test {
 protected:
  DebuginfoUploader& Start(const std::function<void(DebuginfoUploader::Options&)>& change = {}) {
    DebuginfoUploader::Options options;
    options.name = "parca";
    options.server = {.address = server_->Address(), .insecure = true};
    options.retry = {.min_backoff = milliseconds(1), .max_backoff = milliseconds(5)};
    options.between_questions = {};
    options.at_work_for = {};
    options.bytes_per_second = uint64_t{1} << 40;
    if (change) change(options);
    auto made = DebuginfoUploader::Make(std::move(options), files_, clock_, log_);
    EXPECT_TRUE(made.has_value()) << made.error().message();
    uploader_ = *std::move(made);
    return *uploader_;
  }
  void Offer(const std::vector<std::shared_ptr<CodeObject>>& objects,
             CodeOrigin origin = CodeOrigin::kUser) {
    MadeProfile made;
    for (const auto& object : objects) made.Add({MakeLocation("f", origin, object)}, 1);
    uploader_->Offer({made.profile(), made.profile()});
  }
  // Offers it window by window, as profiles of a running program do.
  bool OfferUntil(const std::shared_ptr<CodeObject>& object, const std::function<bool()>& is_so) {
    return Becomes([&] {
      Offer({object});
      return is_so();
    });
  }
  bool HasFailedBy(const char* reason) {
    return Becomes([&] { return uploader_->counters().failed[reason] == 1; });
  }
  bool IsIdle(size_t asked) {
    return Becomes([&] { return uploader_->counters().asked == asked; }) &&
           Becomes([&] { return uploader_->counters().waiting == 0; });
  }

  const Clock clock_;
  Log log_{clock_};
  FakeFiles files_;
  DebuginfoServer service_;
  std::unique_ptr<GrpcServer> server_ = std::make_unique<GrpcServer>(service_);
  const std::shared_ptr<CodeObject> object_ = WithBuildId("/usr/bin/app", 1);
  std::unique_ptr<DebuginfoUploader> uploader_;
};

TEST_F(DebuginfoUploaderTest, SendsWhatTheServerWantsOnce) {
  const std::string bytes = Bytes(10'000);
  files_.Put(*object_, bytes);
  DebuginfoUploader& uploader = Start();
  EXPECT_FALSE(uploader.HasNames(*object_));
  Offer({object_, WithBuildId("/usr/bin/app", 1)});
  ASSERT_TRUE(Becomes([&] { return uploader.HasNames(*object_); }));
  Offer({object_});
  EXPECT_EQ(uploader.counters().waiting, 0);
  const auto uploads = service_.uploads();
  ASSERT_THAT(uploads, UnorderedElementsAre(Pair("abcdef01", testing::_)));
  EXPECT_EQ(uploads.at("abcdef01").bytes, bytes);
  EXPECT_TRUE(uploads.at("abcdef01").is_finished);
  EXPECT_EQ(service_.asked().size(), 1);
  ASSERT_EQ(service_.begun().size(), 1);
  EXPECT_EQ(service_.begun()[0].size(), 10'000);
  EXPECT_EQ(service_.begun()[0].hash(), HashText(bytes));
  EXPECT_EQ(service_.types()["abcdef01"], parca::debuginfo::v1alpha1::BUILD_ID_TYPE_GNU);
  EXPECT_EQ(uploader.counters().uploaded, 1);
  EXPECT_EQ(uploader.counters().uploaded_bytes, 10'000);
}

TEST_F(DebuginfoUploaderTest, SendsFilesWithoutABuildIdByTheirHash) {
  const auto object = MakeObject("/usr/bin/app");
  const std::array<std::byte, FileHash::kSize> hash{std::byte{0xab}};
  object->hash = FileHash(hash);
  files_.Put(*object, "content");
  DebuginfoUploader& uploader = Start();
  Offer({object});
  ASSERT_TRUE(Becomes([&] { return uploader.HasNames(*object); }));
  const std::string id = "ab" + std::string(30, '0');
  EXPECT_EQ(service_.types()[id], parca::debuginfo::v1alpha1::BUILD_ID_TYPE_HASH);
  EXPECT_EQ(service_.uploads()[id].bytes, "content");
}

TEST_F(DebuginfoUploaderTest, SendsLargeFilesInPieces) {
  for (const size_t size : {size_t{1} << 20, (size_t{1} << 20) + 1, (size_t{5} << 20) - 1}) {
    const std::string bytes = Bytes(size);
    const auto object = WithBuildId("/usr/bin/large", static_cast<char>(size % 100));
    files_.Put(*object, bytes);
    DebuginfoUploader& uploader = Start();
    Offer({object});
    ASSERT_TRUE(Becomes([&] { return uploader.HasNames(*object); }));
    const auto upload = service_.uploads()[ContentIdOf(*object)];
    EXPECT_TRUE(upload.bytes == bytes) << size;
    EXPECT_EQ(upload.chunks, (size + (size_t{1} << 20) - 1) >> 20);
  }
}

TEST_F(DebuginfoUploaderTest, AsksNeitherForWhatIsNoFileNorForWhatHasNoId) {
  DebuginfoUploader& uploader = Start();
  Offer({WithBuildId("[vdso]", 2), MakeObject("/usr/bin/unknown")});
  Offer({WithBuildId("/boot/vmlinux", 3)}, CodeOrigin::kKernel);
  EXPECT_EQ(uploader.counters().waiting, 0);
}

TEST_F(DebuginfoUploaderTest, SendsNothingThatTheServerHas) {
  service_.Behave({.has_it = "Debuginfo exists in debuginfod."});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start();
  Offer({object_});
  ASSERT_TRUE(Becomes([&] { return uploader.HasNames(*object_); }));
  EXPECT_EQ(files_.asked(), 0);
  EXPECT_THAT(service_.begun(), testing::IsEmpty());
}

TEST_F(DebuginfoUploaderTest, AsksAgainAfterAWhileWhetherTheServerStillHasIt) {
  service_.Behave({.has_it = "exists"});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start([](auto& options) { options.has_it_for = {}; });
  Offer({object_});
  ASSERT_TRUE(Becomes([&] { return uploader.HasNames(*object_); }));
  service_.Behave({});
  EXPECT_TRUE(OfferUntil(object_, [&] { return uploader.counters().uploaded == 1; }));
}

TEST_F(DebuginfoUploaderTest, WaitsWhileSomebodyElseSends) {
  service_.Behave({.has_it = "A previous upload is still in-progress and not stale yet"});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start([](auto& options) { options.at_work_for = hours(1); });
  Offer({object_});
  ASSERT_TRUE(IsIdle(1));
  Offer({object_});
  EXPECT_EQ(uploader.counters().waiting, 0);
  EXPECT_FALSE(uploader.HasNames(*object_));
  EXPECT_EQ(files_.asked(), 0);
}

TEST_F(DebuginfoUploaderTest, TakesWhatAlreadyExistsForSent) {
  service_.Behave({.begin = {grpc::ALREADY_EXISTS, "equal"}});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start();
  Offer({object_});
  ASSERT_TRUE(Becomes([&] { return uploader.HasNames(*object_); }));
  EXPECT_THAT(uploader.counters().failed, testing::IsEmpty());
  EXPECT_EQ(uploader.counters().uploaded, 0);
}

TEST_F(DebuginfoUploaderTest, NeverOffersAgainWhatTheServerRefuses) {
  service_.Behave({.begin = {grpc::INVALID_ARGUMENT, "upload size exceeds the maximum"}});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start();
  Offer({object_});
  ASSERT_TRUE(HasFailedBy("invalid_argument"));
  Offer({object_});
  EXPECT_EQ(uploader.counters().waiting, 0);
  EXPECT_FALSE(uploader.HasNames(*object_));
}

struct PassingTrouble {
  const char* name;
  const char* reason;
  DebuginfoServer::Behaviour behaviour;
};

class DebuginfoTrouble : public DebuginfoUploaderTest,
                         public testing::WithParamInterface<PassingTrouble> {};

TEST_P(DebuginfoTrouble, IsTriedAgain) {
  service_.Behave(GetParam().behaviour);
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start();
  EXPECT_TRUE(
      OfferUntil(object_, [&] { return uploader.counters().failed[GetParam().reason] >= 2; }));
  EXPECT_FALSE(uploader.HasNames(*object_));
  EXPECT_EQ(uploader.counters().uploaded, 0);
  service_.Behave({});
  // Without the service it would be asked again after an hour.
  if (std::string_view(GetParam().reason) == "unimplemented") return;
  EXPECT_TRUE(OfferUntil(object_, [&] { return uploader.counters().uploaded == 1; }));
  EXPECT_TRUE(service_.uploads()["abcdef01"].is_finished);
}

INSTANTIATE_TEST_SUITE_P(
    All, DebuginfoTrouble,
    testing::Values(
        PassingTrouble{"Question", "unavailable", {.question = {grpc::UNAVAILABLE, "no"}}},
        PassingTrouble{"QuestionInternal", "internal", {.question = {grpc::INTERNAL, "no"}}},
        PassingTrouble{
            "Race", "failed_precondition", {.begin = {grpc::FAILED_PRECONDITION, "race"}}},
        PassingTrouble{"Upload", "internal", {.upload = {grpc::INTERNAL, "bucket is full"}}},
        PassingTrouble{"Finish", "unknown", {.finish = {grpc::UNKNOWN, "no"}}}),
    [](const auto& trouble) { return trouble.param.name; });

TEST_F(DebuginfoUploaderTest, LeavesAServerWithoutTheServiceAlone) {
  service_.Behave({.question = {grpc::UNIMPLEMENTED, "unknown service"}});
  DebuginfoUploader& uploader = Start();
  Offer({object_});
  ASSERT_TRUE(HasFailedBy("unimplemented"));
  Offer({object_});
  EXPECT_EQ(uploader.counters().waiting, 0);
}

TEST_F(DebuginfoUploaderTest, ComesBackToAServerThatWasAway) {
  const int port = server_->port();
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start();
  server_.reset();
  EXPECT_TRUE(OfferUntil(object_, [&] { return uploader.counters().failed["connect"] >= 2; }));
  server_ = std::make_unique<GrpcServer>(service_, grpc::InsecureServerCredentials(), port);
  EXPECT_TRUE(OfferUntil(object_, [&] { return uploader.counters().uploaded == 1; }));
}

TEST_F(DebuginfoUploaderTest, DoesNotBelieveThatAnotherSizeIsTheFile) {
  service_.Behave({.size_off_by = 1});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start();
  Offer({object_});
  ASSERT_TRUE(HasFailedBy("bad_answer"));
  EXPECT_FALSE(uploader.HasNames(*object_));
  EXPECT_FALSE(service_.uploads()["abcdef01"].is_finished);
}

TEST_F(DebuginfoUploaderTest, SendsNoFileThatIsTooLarge) {
  files_.Put(*object_, Bytes(1001));
  const auto small = WithBuildId("/usr/bin/small", 4);
  files_.Put(*small, Bytes(1000));
  DebuginfoUploader& uploader = Start([](auto& options) { options.max_size = 1000; });
  Offer({object_, small});
  ASSERT_TRUE(HasFailedBy("too_large"));
  ASSERT_TRUE(Becomes([&] { return uploader.counters().uploaded == 1; }));
  Offer({object_});
  EXPECT_EQ(uploader.counters().waiting, 0);
  EXPECT_THAT(service_.uploads(), UnorderedElementsAre(Pair("abcdef04", testing::_)));
}

TEST_F(DebuginfoUploaderTest, LooksAgainForAFileThatWasNotAtHand) {
  DebuginfoUploader& uploader = Start();
  EXPECT_TRUE(OfferUntil(object_, [&] { return uploader.counters().failed["no_file"] >= 2; }));
  files_.Put(*object_, "content");
  EXPECT_TRUE(OfferUntil(object_, [&] { return uploader.counters().uploaded == 1; }));
}

TEST_F(DebuginfoUploaderTest, DoesNotFinishAFileThatChangesWhileItIsSent) {
  service_.Behave({.on_begin = [this] { files_.Append(*object_); }});
  files_.Put(*object_, "content");
  Start([](auto& options) { options.at_work_for = hours(1); });
  Offer({object_});
  EXPECT_TRUE(HasFailedBy("cancelled"));
  EXPECT_FALSE(service_.uploads()["abcdef01"].is_finished);
}

TEST_F(DebuginfoUploaderTest, KeepsToItsRateOnAverage) {
  files_.Put(*object_, Bytes(1000));
  const auto other = WithBuildId("/usr/bin/other", 5);
  files_.Put(*other, Bytes(1000));
  DebuginfoUploader& uploader = Start([](auto& options) { options.bytes_per_second = 5000; });
  const auto begin = std::chrono::steady_clock::now();
  Offer({object_, other});
  ASSERT_TRUE(Becomes([&] { return uploader.counters().uploaded == 2; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
}

TEST_F(DebuginfoUploaderTest, EndsWhatIsUnderWayWhenStopped) {
  service_.Behave({.hangs = true});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start();
  Offer({object_});
  ASSERT_TRUE(Becomes([&] { return service_.begun_uploads() == 1; }));
  auto stopped = std::async(std::launch::async, [&] { uploader.Stop(); });
  EXPECT_EQ(stopped.wait_for(seconds(10)), std::future_status::ready);
}

TEST_F(DebuginfoUploaderTest, SendsToTheUrlThatTheServerNames) {
  RawServer storage({.answer = HttpText(200)});
  service_.Behave({.signed_url = storage.Url() + "/bucket/abcdef01?signature=x%2Fy"});
  const std::string bytes = Bytes(3'000);
  files_.Put(*object_, bytes);
  DebuginfoUploader& uploader = Start([](auto& options) {
    options.server.client.headers = {{"X-Project", "blue"}};
    options.server.client.basic_auth = BasicAuth{.username = "me", .password = "secret"};
  });
  Offer({object_});
  ASSERT_TRUE(Becomes([&] { return uploader.HasNames(*object_); }));
  ASSERT_EQ(storage.Requests().size(), 1);
  const std::string request = storage.Requests()[0];
  EXPECT_TRUE(request.starts_with("PUT /bucket/abcdef01?signature=x%2Fy HTTP/1.1\r\n")) << request;
  EXPECT_THAT(request, HasSubstr("Content-Length: 3000\r\n"));
  EXPECT_THAT(request, Not(HasSubstr("Authorization")));
  EXPECT_THAT(request, Not(HasSubstr("blue")));
  EXPECT_TRUE(request.ends_with("\r\n\r\n" + bytes));
  EXPECT_TRUE(service_.uploads()["abcdef01"].is_finished);
}

TEST_F(DebuginfoUploaderTest, TellsWhatTheStorageSays) {
  RawServer storage({.answer = HttpText(403)});
  service_.Behave({.signed_url = storage.Url() + "/x"});
  files_.Put(*object_, "content");
  DebuginfoUploader& uploader = Start([](auto& options) { options.at_work_for = hours(1); });
  Offer({object_});
  EXPECT_TRUE(HasFailedBy("http_403"));
  EXPECT_FALSE(uploader.HasNames(*object_));
}

TEST_F(DebuginfoUploaderTest, UnderstandsNoUrlThatIsNone) {
  for (const char* url : {"ftp://host/x", "nothing", "http://user:secret@host/x"}) {
    service_.Behave({.signed_url = url});
    files_.Put(*object_, "content");
    Start();
    Offer({object_});
    EXPECT_TRUE(HasFailedBy("bad_answer")) << url;
  }
}

}  // namespace
}  // namespace pyrometer
