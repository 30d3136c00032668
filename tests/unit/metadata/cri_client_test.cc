// SPDX-License-Identifier: Apache-2.0
#include "metadata/cri_client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "proto/cri.grpc.pb.h"
#include "tests/shared/eventually.h"

namespace pyrometer {
namespace {

namespace cri = ::runtime::v1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using namespace std::chrono_literals;

// A runtime that has what a test gave it.
class FakeRuntime final : public cri::RuntimeService::Service {
 public:
  grpc::Status ListContainers(grpc::ServerContext* context, const cri::ListContainersRequest*,
                              cri::ListContainersResponse* response) override {
    *response = containers;
    return on_list ? on_list(*context) : grpc::Status::OK;
  }
  grpc::Status ListPodSandbox(grpc::ServerContext*, const cri::ListPodSandboxRequest*,
                              cri::ListPodSandboxResponse* response) override {
    *response = sandboxes;
    return grpc::Status::OK;
  }

  cri::ListContainersResponse containers;
  cri::ListPodSandboxResponse sandboxes;
  std::function<grpc::Status(grpc::ServerContext&)> on_list;
};

class CriClientTest : public testing::Test {
 protected:
  CriClientTest() {
    std::string name = testing::TempDir() + "/cri-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    std::filesystem::permissions(directory_, std::filesystem::perms::all);
    socket_ = directory_ + "/runtime.sock";
  }
  ~CriClientTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    std::filesystem::remove_all(directory_);
  }

  void Serve() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&runtime_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  Result<std::vector<ContainerMetadata>> List(std::vector<std::string> sockets = {},
                                              std::chrono::nanoseconds timeout = kTestPatience) {
    if (sockets.empty()) sockets = {socket_};
    return CriClient({.sockets = sockets, .timeout = timeout}, clock_).List();
  }

  Error ErrorOfList(std::vector<std::string> sockets = {},
                    std::chrono::nanoseconds timeout = kTestPatience) {
    Result<std::vector<ContainerMetadata>> list = List(std::move(sockets), timeout);
    EXPECT_FALSE(list.has_value());
    return list ? Error(ErrorCode::kInternal, "none") : std::move(list).error();
  }

  void AddPod() {
    cri::PodSandbox& sandbox = *runtime_.sandboxes.add_items();
    sandbox.set_id("sandbox");
    sandbox.mutable_metadata()->set_name("web-0");
    sandbox.mutable_metadata()->set_namespace_("shop");
    sandbox.mutable_metadata()->set_uid("uid");
    (*sandbox.mutable_labels())["app"] = "web";
    (*sandbox.mutable_annotations())["note"] = "x";
    (*sandbox.mutable_annotations())["last-applied"] = std::string(5000, 'x');
    AddContainer("c1", "sandbox");
  }

  cri::Container& AddContainer(const std::string& id, const std::string& sandbox) {
    cri::Container& container = *runtime_.containers.add_containers();
    container.set_id(id);
    container.set_pod_sandbox_id(sandbox);
    container.mutable_metadata()->set_name("app");
    container.mutable_metadata()->set_attempt(2);
    container.mutable_image()->set_image("image:1");
    return container;
  }

  // Answers nothing until the caller goes; counts those that ask.
  void HangOnList() {
    runtime_.on_list = [this](grpc::ServerContext& context) {
      ++hanging_;
      while (!context.IsCancelled()) std::this_thread::sleep_for(1ms);
      return grpc::Status::CANCELLED;
    };
  }

  const Clock clock_;
  std::atomic<int> hanging_ = 0;
  FakeRuntime runtime_;
  std::string directory_;
  std::string socket_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(CriClientTest, ListsContainersAndSandboxesWithTheirPods) {
  AddPod();
  Serve();
  const auto list = List();
  ASSERT_TRUE(list.has_value()) << list.error().message();
  ASSERT_THAT(*list, SizeIs(2));
  const ContainerMetadata& sandbox = (*list)[0];
  EXPECT_EQ(sandbox.id, "sandbox");
  EXPECT_EQ(sandbox.name, "");
  const ContainerMetadata& container = (*list)[1];
  EXPECT_EQ(container.id, "c1");
  EXPECT_EQ(container.name, "app");
  EXPECT_EQ(container.image, "image:1");
  EXPECT_EQ(container.attempt, 2U);
  EXPECT_EQ(container.pod, sandbox.pod) << "shared, not copied";
  EXPECT_EQ(container.pod->name, "web-0");
  EXPECT_EQ(container.pod->name_space, "shop");
  EXPECT_EQ(container.pod->uid, "uid");
  EXPECT_THAT(container.pod->labels, ElementsAre(Pair("app", "web")));
  EXPECT_THAT(container.pod->annotations, ElementsAre(Pair("note", "x"))) << "the long one is not";
}

TEST_F(CriClientTest, KnowsThePodOfAContainerWhoseSandboxIsGone) {
  cri::Container& container = AddContainer("c1", "gone");
  (*container.mutable_labels())["io.kubernetes.pod.name"] = "web-0";
  (*container.mutable_labels())["io.kubernetes.pod.namespace"] = "shop";
  (*container.mutable_labels())["io.kubernetes.pod.uid"] = "uid";
  AddContainer("c2", "never-was");
  Serve();
  const auto list = List();
  ASSERT_TRUE(list.has_value());
  ASSERT_THAT(*list, SizeIs(2));
  EXPECT_EQ((*list)[0].pod->name, "web-0");
  EXPECT_EQ((*list)[0].pod->name_space, "shop");
  EXPECT_EQ((*list)[1].pod->name, "");
}

TEST_F(CriClientTest, ListsAThousandPods) {
  for (int i = 0; i < 1000; ++i) {
    const std::string id = "s" + std::to_string(i);
    runtime_.sandboxes.add_items()->set_id(id);
    AddContainer("c" + std::to_string(i), id);
  }
  Serve();
  const auto list = List();
  ASSERT_TRUE(list.has_value());
  EXPECT_THAT(*list, SizeIs(2000));
}

TEST_F(CriClientTest, RefusesAnAnswerThatIsTooLong) {
  (*AddContainer("c1", "s").mutable_labels())["x"] = std::string(2000, 'x');
  Serve();
  const auto list_with = [this](size_t longest_answer) {
    return CriClient(
               {.sockets = {socket_}, .timeout = kTestPatience, .longest_answer = longest_answer},
               clock_)
        .List();
  };
  EXPECT_TRUE(list_with(3000).has_value());
  const auto list = list_with(1000);
  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().code(), ErrorCode::kExhausted);
  EXPECT_THAT(list.error().message(), HasSubstr(socket_ + ": listing containers: "));
}

TEST_F(CriClientTest, WaitsForNoAnswerForEver) {
  HangOnList();
  Serve();
  // The time may be over before the runtime is asked: then there is more of it.
  Error error = ErrorOfList({}, 50ms);
  for (auto timeout = 100ms; hanging_ == 0 && timeout < kTestPatience; timeout *= 2) {
    error = ErrorOfList({}, timeout);
  }
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.message(), HasSubstr("listing containers: no answer in time"));
}

TEST_F(CriClientTest, EndsACallThatIsCancelled) {
  HangOnList();
  Serve();
  CriClient client({.sockets = {socket_}, .timeout = 1h}, clock_);
  std::thread cancelling([&] {
    EXPECT_TRUE(Eventually([&] { return hanging_ == 1; }));
    client.Cancel();
  });
  EXPECT_FALSE(client.List().has_value());
  EXPECT_FALSE(client.List().has_value()) << "nor any later one";
  cancelling.join();
}

TEST_F(CriClientTest, SaysWhatARuntimeAnswers) {
  for (const auto& [status, code, words] :
       {std::tuple(grpc::StatusCode::UNAVAILABLE, ErrorCode::kIo, "starting up"),
        std::tuple(grpc::StatusCode::UNIMPLEMENTED, ErrorCode::kUnsupported, "plugin cri"),
        std::tuple(grpc::StatusCode::PERMISSION_DENIED, ErrorCode::kPermission, "starting up")}) {
    runtime_.on_list = [answer = grpc::Status(status, "starting up")](auto&) { return answer; };
    if (server_ == nullptr) Serve();
    const Error error = ErrorOfList();
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.message(), HasSubstr(words));
  }
}

TEST_F(CriClientTest, MakesNothingOfGarbage) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, socket_.c_str());
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  std::thread server([&listener] {
    const UniqueFd peer(::accept(listener.get(), nullptr, nullptr));
    const std::string garbage(100000, 'x');
    ::send(peer.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
  });
  EXPECT_EQ(ErrorOfList().code(), ErrorCode::kIo);
  server.join();
}

TEST_F(CriClientTest, TakesTheFirstSocketThatAnswers) {
  AddPod();
  Serve();
  const auto list = List({directory_ + "/none.sock", socket_, directory_ + "/other.sock"});
  ASSERT_TRUE(list.has_value());
  EXPECT_THAT(*list, SizeIs(2));
}

TEST_F(CriClientTest, SaysThatNothingListens) {
  const std::string none = directory_ + "/none.sock";
  EXPECT_EQ(ErrorOfList({none}).code(), ErrorCode::kNotFound);
  const Error error = ErrorOfList({none, directory_ + "/other.sock"});
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("no container runtime listens at any of " + none));
  EXPECT_EQ(ErrorOfList({std::string(200, 'x')}).code(), ErrorCode::kInvalid);
}

TEST_F(CriClientTest, SaysWhichSocketRefusesUs) {
  Serve();
  ASSERT_EQ(::chmod(socket_.c_str(), 0600), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user who may not";
  Error error(ErrorCode::kInternal, "");
  // The system call changes this thread alone, glibc's function all of them.
  std::thread([&] {
    ASSERT_EQ(::syscall(SYS_setresuid, 65534, 65534, 65534), 0);
    error = ErrorOfList({directory_ + "/none.sock", socket_});
  }).join();
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_THAT(error.message(), HasSubstr(socket_ + ": permission denied; run the agent as root"));
}

}  // namespace
}  // namespace pyrometer
