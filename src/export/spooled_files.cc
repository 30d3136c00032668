// SPDX-License-Identifier: Apache-2.0
#include "export/spooled_files.h"

#include <algorithm>

namespace pyrometer {

void SpooledFiles::Add(SpooledFile file) {
  bytes_ += file.bytes;
  const uint64_t number = file.number;
  files_[number] = std::make_shared<SpooledFile>(std::move(file));
}

SpooledFiles::Record SpooledFiles::NextToOpen() const {
  if (open_ || files_.empty()) return nullptr;
  const auto next = files_.upper_bound(last_opened_);
  return next == files_.end() ? files_.begin()->second : next->second;
}

void SpooledFiles::Opened(Record record, SpoolFile file, std::vector<uint32_t> parcels) {
  record->ended.resize(file.entries().size());
  last_opened_ = record->number;
  open_ = std::move(record);
  file_ = std::make_shared<const SpoolFile>(std::move(file));
  waiting_.assign(parcels.begin(), parcels.end());
  CloseIfDone();
}

SpooledParcel SpooledFiles::Take() {
  const uint32_t index = waiting_.front();
  waiting_.pop_front();
  ++under_way_;
  SpooledParcel parcel{.record = open_, .file = file_, .index = index};
  parcel.ticks = file_->entries()[index].samples;
  open_->ticks_under_way += parcel.ticks;
  return parcel;
}

void SpooledFiles::End(const SpooledParcel& parcel) {
  SpooledFile& record = *parcel.record;
  record.ended[parcel.index] = true;
  record.tried.erase(parcel.index);
  record.ticks -= parcel.ticks;
  --record.parcels;
  Out(parcel);
}

bool SpooledFiles::PutBack(const SpooledParcel& parcel) {
  if (parcel.record == open_) waiting_.clear();
  const bool is_there = parcel.record->given_up.empty();
  Out(parcel);
  return is_there;
}

void SpooledFiles::Out(const SpooledParcel& parcel) {
  parcel.record->ticks_under_way -= parcel.ticks;
  if (parcel.record != open_) return;
  --under_way_;
  CloseIfDone();
}

void SpooledFiles::CloseIfDone() {
  if (!waiting_.empty() || under_way_ != 0) return;
  if (open_->parcels == 0) {
    finished_.push_back(open_->number);
    bytes_ -= open_->bytes;
    files_.erase(open_->number);
  }
  open_ = nullptr;
  file_ = nullptr;
}

uint64_t SpooledFiles::GiveUp(const Record& record, std::string_view reason) {
  const uint64_t ticks = record->ticks - record->ticks_under_way;
  record->given_up = reason;
  finished_.push_back(record->number);
  bytes_ -= record->bytes;
  files_.erase(record->number);
  if (record == open_) {
    open_ = nullptr;
    file_ = nullptr;
    waiting_.clear();
    under_way_ = 0;
  }
  return ticks;
}

std::optional<std::chrono::system_clock::time_point> SpooledFiles::oldest() const {
  if (files_.empty()) return std::nullopt;
  return std::ranges::min_element(files_, {}, [](const auto& file) { return file.second->begin; })
      ->second->begin;
}

}  // namespace pyrometer
