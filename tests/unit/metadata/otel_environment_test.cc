// SPDX-License-Identifier: Apache-2.0
#include "metadata/otel_environment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyrometer {
namespace {

struct Case {
  std::vector<std::string> environment;
  std::string service;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {{}, ""},
      {{"PATH=/bin", "HOME=/"}, ""},
      {{"PATH=/bin", "OTEL_SERVICE_NAME=cart", "HOME=/"}, "cart"},
      {{"OTEL_SERVICE_NAME=cart", "OTEL_RESOURCE_ATTRIBUTES=service.name=other"}, "cart"},
      {{"OTEL_SERVICE_NAME=", "OTEL_RESOURCE_ATTRIBUTES=service.name=cart"}, "cart"},
      {{"OTEL_SERVICE_NAME=a=b%20c,d"}, "a=b%20c,d"},
      {{"OTEL_SERVICE_NAME=first", "OTEL_SERVICE_NAME=second"}, "first"},
      {{"OTEL_SERVICE_NAME_2=cart", "XOTEL_SERVICE_NAME=cart", "OTEL_SERVICE_NAME"}, ""},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.version=1,service.name=cart"}, "cart"},
      {{"OTEL_RESOURCE_ATTRIBUTES= service.name = cart ,a=b"}, "cart"},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name=the%20cart%2C%3d%25"}, "the cart,=%"},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name=a,service.name=b"}, "b"},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name=a=b"}, "a=b"},
      {{"OTEL_RESOURCE_ATTRIBUTES=my.service.name=cart,service.name.of=cart"}, ""},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name=cart,nothing"}, ""},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name=cart,a=%2"}, ""},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name=cart,a=%zz"}, ""},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name=%-1"}, ""},
      {{"OTEL_RESOURCE_ATTRIBUTES=service.name="}, ""},
  };
  return cases;
}

TEST(OtelServiceName, IsWhatTheSpecificationSays) {
  for (const Case& one : Cases()) {
    std::string text;
    for (const std::string& entry : one.environment) text.append(entry).push_back('\0');
    EXPECT_EQ(OtelServiceName(text), one.service) << text;
  }
}

TEST(OtelServiceName, TakesTextWithoutAnEnd) {
  EXPECT_EQ(OtelServiceName("A=b"), "");
  EXPECT_EQ(OtelServiceName(std::string("\0\0OTEL_SERVICE_NAME=ca", 23)), "ca");
}

}  // namespace
}  // namespace pyrometer
