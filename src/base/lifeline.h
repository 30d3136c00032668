// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace pyrometer {

// Leads callbacks that come at any time, on any thread, to an object that may be gone by then. A
// member of that object, to be declared last.
template <typename T>
class Lifeline {
 public:
  explicit Lifeline(T& object) : end_(std::make_shared<End>(&object)) {}
  // Waits for calls under way.
  ~Lifeline() {
    const std::lock_guard lock(end_->mutex);
    end_->object = nullptr;
  }
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  // A callback that calls `function` with the object and its own arguments, or does nothing. One
  // call at a time, though one may lead to another.
  template <typename Function>
  auto To(Function function) const {
    return [end = end_, function = std::move(function)](auto&&... arguments) {
      const std::lock_guard lock(end->mutex);
      if (end->object != nullptr) {
        function(*end->object, std::forward<decltype(arguments)>(arguments)...);
      }
    };
  }

 private:
  struct End {
    explicit End(T* to) : object(to) {}
    std::recursive_mutex mutex;
    T* object;
  };

  const std::shared_ptr<End> end_;
};

}  // namespace pyrometer
