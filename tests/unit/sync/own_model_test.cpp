/// The example model works, and the documentation shows the very lines that are compiled here.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "../../../examples/every_nth_model.hpp"
#include "desk.hpp"
#include "fluentps/error.hpp"

namespace fluentps::test {
namespace {

void register_once() {
  static const bool done = [] {
    register_sync_model(
        {"every", "every:n=N", "i < V, or (i+1) mod N != 0", "Count[V] == N", "this example", make_every_nth});
    return true;
  }();
  static_cast<void>(done);
}

TEST(OwnModel, waits_at_every_nth_iteration) {
  register_once();
  for (const auto& release : {kSoft, kLazy}) {
    Desk desk("every:n=3", 2, release);
    EXPECT_EQ(desk.both(0, 0), "0@0");
    EXPECT_EQ(desk.both(0, 1), "0@1");
    // Receive: the pull at 2, the third. Expect: delayed until worker 1 has pushed 2.
    EXPECT_EQ(desk.both(0, 2), "");
    EXPECT_EQ(desk.both(1, 0), "1@0");
    EXPECT_EQ(desk.both(1, 1), "1@1");
    EXPECT_EQ(desk.push(1, 2), "0@2*");
    // Receive: worker 1's own pull at 2, V = 3. Expect: answered, the model is not asked.
    EXPECT_EQ(desk.pull(1, 2), "1@2");
  }
  EXPECT_EQ(SyncPlan("bsp; @5 every:n=3", 2, 1).canonical(), "bsp; @5 every:n=3");
  EXPECT_THROW(SyncPlan("every:n=0", 2, 1), UsageError);
}

std::string read(const std::string& path) {
  const std::string root = std::string(__FILE__).substr(0, std::string(__FILE__).rfind("tests/unit/sync/"));
  std::ifstream file(root + path);
  EXPECT_TRUE(file) << "cannot read " << root << path << ": run the tests from the root of the project";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The lines between two marks, without the indentation of the mark.
std::string between(const std::string& text, const std::string& mark) {
  const auto first = text.find(mark);
  const auto begin = text.find('\n', first) + 1;
  const auto indent = first - (text.rfind('\n', first) + 1);
  std::stringstream lines(text.substr(begin, text.find(mark, begin) - begin - indent));
  std::string result;
  for (std::string line; std::getline(lines, line);) result += line.substr(std::min(indent, line.size())) + "\n";
  return result;
}

TEST(OwnModel, is_shown_in_the_documentation_as_compiled) {
  const auto page = read("docs/sync-models.md");
  const auto model = between(read("examples/every_nth_model.hpp"), "// [model]");
  const auto registration = between(read("examples/own_model.cpp"), "// [register]");
  EXPECT_GT(model.size(), 500U);
  EXPECT_NE(page.find("```cpp\n" + model + "```"), std::string::npos) << model;
  EXPECT_NE(page.find("```cpp\n" + registration + "```"), std::string::npos) << registration;
}

/// Every model of the registry is in the documentation's table with its signature.
TEST(Documentation, lists_every_model) {
  const auto page = read("docs/sync-models.md");
  for (const auto* name : {"bsp", "asp", "ssp", "dssp", "pssp", "drop", "partial", "psp", "softsync"}) {
    const auto& models = sync_models();
    const auto model =
        std::find_if(models.begin(), models.end(), [&](const auto& entry) { return entry.name == name; });
    ASSERT_NE(model, models.end());
    // A bar would end the cell of the table.
    auto cell = "| `" + model->signature + "` |";
    if (const auto bar = model->signature.find('|'); bar != std::string::npos) cell.insert(bar + 3, "\\");
    EXPECT_NE(page.find(cell), std::string::npos) << cell;
  }
}

}  // namespace
}  // namespace fluentps::test
