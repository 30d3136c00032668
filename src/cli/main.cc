// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "agent/agent.h"
#include "agent/label_explanation.h"
#include "base/procfs.h"
#include "cli/agent_setup.h"
#include "cli/run.h"
#include "doctor/doctor.h"
#include "record/recorder.h"

namespace {

// Started with a standard stream closed, the next file opened would take its number, and what is
// meant for the stream would go into that file.
void OpenStandardStreams() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardStreams();
  // A reader that went away is an error of that output, and the others are still written.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const pyrometer::Commands commands = {
      .record = pyrometer::Record,
      .agent = pyrometer::RunAgent,
      .explain =
          [](const pyrometer::AgentOptions& options, pyrometer::Pid pid) {
            const pyrometer::Clock clock;
            return pyrometer::ExplainLabels(pyrometer::Procfs{}, options, clock, pid);
          },
      .examine =
          [] {
            const pyrometer::Clock clock;
            return pyrometer::RunDoctor(pyrometer::Procfs{}, pyrometer::FindAgentSetup(), clock);
          },
  };
  const pyrometer::Streams streams = {
      .out = STDOUT_FILENO,
      .error = STDERR_FILENO,
      .out_is_terminal = terminal,
      .colour = terminal && std::getenv("NO_COLOR") == nullptr,
  };
  return pyrometer::Run(argc, argv, commands, streams);
}
