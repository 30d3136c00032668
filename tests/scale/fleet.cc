// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/fleet.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <stdexcept>

namespace pyrometer::scale {
namespace {

namespace fs = std::filesystem;

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

BuildId BuildIdOf(const std::string& text) {
  const size_t hash = std::hash<std::string>()(text);
  if (hash % 5 == 0) return {};
  return BuildId(std::as_bytes(std::span(&hash, 1)));
}

// Its code takes no room on the disk.
void WriteObject(const std::string& path, const std::string& text) {
  const std::vector<std::byte> image = SharedObject(text, BuildIdOf(text));
  if (image.size() > Layout::kOffset) throw std::runtime_error("no room for the code of " + text);
  WriteFile(path, std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  fs::resize_file(path, Layout::kOffset + Layout::kBytes);
}

MappedFile NameOf(const std::string& root, const std::string& path, const std::string& text) {
  struct stat status {};
  if (::stat((root + path).c_str(), &status) != 0) throw std::runtime_error("no " + root + path);
  MappedFile named{.path = path, .build_id = BuildIdOf(text)};
  if (named.build_id.empty()) {
    named.major = gnu_dev_major(status.st_dev);
    named.minor = gnu_dev_minor(status.st_dev);
    named.inode = status.st_ino;
  }
  return named;
}

std::string MapsOf(const Container& container) {
  std::string maps;
  for (size_t i = 0; i < container.files.size(); ++i) {
    const std::string& path = container.files[i].named.path;
    const FileMapping range = RangeOf(container.base, i);
    struct stat status {};
    ::stat((container.root + path).c_str(), &status);
    maps += fmt::format("{:x}-{:x} r-xp {:08x} {:02x}:{:02x} {} {}\n", range.start.value(),
                        range.end.value(), range.offset.value(), gnu_dev_major(status.st_dev),
                        gnu_dev_minor(status.st_dev), status.st_ino, path);
  }
  return maps;
}

}  // namespace

FileMapping RangeOf(uint64_t base, size_t file) {
  const uint64_t start = base + file * 0x10000;
  return {Address(start), Address(start + Layout::kBytes), FileOffset(Layout::kOffset)};
}

Fleet::Fleet(const Scale& scale) : scale_(scale) {
  directory_ = (fs::temp_directory_path() / "pyrometer-scale-XXXXXX").string();
  if (::mkdtemp(directory_.data()) == nullptr) throw std::runtime_error("no " + directory_);
  fs::create_directories(directory_ + "/host/tmp");
  WriteProc(Pid(1), StartTime(1), directory_ + "/host", "");
}

Fleet::~Fleet() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

Container Fleet::Deploy(uint32_t number, uint32_t release) {
  Container container;
  container.root = fmt::format("{}/container-{}", directory_, deployed_++);
  container.image = fmt::format("image-{}-{}", number / kSharing, release);
  fs::create_directories(container.root + "/lib");
  fs::create_directories(container.root + "/tmp");
  for (uint32_t i = 0; i < scale_.files; ++i) {
    const std::string path = fmt::format("/lib/{}.so", i);
    const bool own = i >= scale_.files / 10;
    const std::string text = fmt::format("{}.{}", own ? container.image : kBase, i);
    WriteObject(container.root + path, text);
    container.files.push_back({.text = text, .named = NameOf(container.root, path, text)});
  }
  return container;
}

void Fleet::ShowMain(const Container& container) const {
  WriteProc(container.main, container.start, container.root, MapsOf(container));
}

void Fleet::Remove(const Container& container) const {
  fs::remove_all(fmt::format("{}/proc/{}", directory_, container.main.value()));
  fs::remove_all(container.root);
}

void Fleet::WriteProc(Pid pid, StartTime start, const std::string& root,
                      const std::string& maps) const {
  const std::string base = fmt::format("{}/proc/{}/", directory_, pid.value());
  fs::create_directories(base + "ns");
  fs::create_directories(fmt::format("{}task/{}", base, pid.value()));
  WriteFile(base + "stat", fmt::format("{} (main) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n",
                                       pid.value(), start.value()));
  WriteFile(base + "maps", maps);
  WriteFile(base + "status", fmt::format("Uid:\t0\t0\t0\t0\nNSpid:\t{}\t1\n", pid.value()));
  WriteFile(base + "ns/mnt", "");
  fs::create_directory_symlink(root, base + "root");
}

}  // namespace pyrometer::scale
