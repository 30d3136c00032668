// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <utility>

namespace pyrometer {
namespace {

std::shared_ptr<spdlog::logger> StandardError() {
  auto logger = std::make_shared<spdlog::logger>("pyrometer",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("pyrometer: %v");
  return logger;
}

}  // namespace

Log::Log(const Clock& clock, std::chrono::nanoseconds quiet) : Log(clock, quiet, StandardError()) {}

Log::Log(const Clock& clock, std::chrono::nanoseconds quiet, std::shared_ptr<spdlog::logger> logger)
    : clock_(clock), quiet_(quiet), logger_(std::move(logger)) {}

void Log::Warn(std::string_view what, std::string_view why) {
  const MonotonicTime now = clock_.Now();
  uint64_t kept_quiet = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = troubles_.try_emplace(std::string(what));
    Trouble& trouble = entry->second;
    const bool goes_on = !is_new && Between(trouble.last, now) < kLongestQuiet;
    trouble.last = now;
    if (!is_new && Between(trouble.told, now) < trouble.quiet) {
      ++trouble.kept_quiet;
      return;
    }
    trouble.quiet =
        goes_on ? std::min<std::chrono::nanoseconds>(2 * trouble.quiet, kLongestQuiet) : quiet_;
    kept_quiet = std::exchange(trouble.kept_quiet, 0);
    trouble.told = now;
  }
  if (kept_quiet == 0) {
    logger_->warn("{}: {}", what, why);
  } else {
    logger_->warn("{}: {} ({} more times since this was last said)", what, why, kept_quiet);
  }
}

void Log::Tell(std::string_view what, std::string_view news) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(troubles_, [&](const auto& trouble) { return trouble.first.starts_with(what); });
  }
  logger_->info("{}: {}", what, news);
}

}  // namespace pyrometer
