// SPDX-License-Identifier: Apache-2.0
// Code in which much is inlined, of which tests ask where in its source it is. Never run.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

struct Point {
  double x = 0;
  double y = 0;
  Point operator+(const Point& other) const { return {x + other.x, y + other.y}; }
  double Length() const { return x * x + y * y; }
};

template <typename T>
T Sum(const std::vector<T>& all) {
  return std::accumulate(all.begin(), all.end(), T{});
}

using Value = std::variant<int, std::string, std::vector<Point>>;

std::string Print(const Value& value) {
  struct Printer {
    std::string operator()(int number) const { return std::to_string(number); }
    std::string operator()(const std::string& text) const { return '"' + text + '"'; }
    std::string operator()(const std::vector<Point>& points) const {
      std::ostringstream out;
      for (const Point& point : points) out << point.x << ',' << point.y << ' ';
      return out.str();
    }
  };
  return std::visit(Printer(), value);
}

class Shape {
 public:
  virtual ~Shape() = default;
  virtual double Area() const = 0;
};

class Polygon : public Shape {
 public:
  explicit Polygon(std::vector<Point> points) : points_(std::move(points)) {}
  double Area() const override {
    const auto longer = [](const Point& a, const Point& b) { return a.Length() < b.Length(); };
    std::vector<Point> sorted = points_;
    std::sort(sorted.begin(), sorted.end(), longer);
    return Sum(sorted).Length();
  }

 private:
  std::vector<Point> points_;
};

}  // namespace

int main(int count, char** arguments) {
  std::map<std::string, Value> values;
  std::unordered_map<std::string, int> counts;
  const std::regex word("([a-z]+)=([0-9]+)");
  for (int i = 0; i < count; ++i) {
    const std::string text = arguments[i];
    std::smatch match;
    if (std::regex_match(text, match, word)) values[match[1]] = std::stoi(match[2]);
    ++counts[text];
  }
  const std::unique_ptr<Shape> shape =
      std::make_unique<Polygon>(std::vector<Point>{{1, 2}, {3, 4}, {double(count), 0}});
  const std::function<double()> area = [&] { return shape->Area(); };
  for (const auto& [name, value] : values)
    std::printf("%s %s\n", name.c_str(), Print(value).c_str());
  std::printf("%f %zu\n", area(), counts.size());
  return 0;
}
