/// The small specs of the command line.
#include "text/spec.hpp"

#include <gtest/gtest.h>

#include "fluentps/error.hpp"
#include "text/words.hpp"

namespace fluentps {
namespace {

TEST(Spec, NameArgumentsAndWords) {
  Spec spec("synthetic: resnet56 , compute_ms = 30", "--model");
  EXPECT_EQ(spec.name(), "synthetic");
  EXPECT_EQ(spec.words(), std::vector<std::string>{"resnet56"});
  EXPECT_EQ(spec.number("compute_ms", 0, 0, 100), 30);
  EXPECT_EQ(spec.number("sdev_ms", 7, 0, 100), 7);
  spec.finish();
}

TEST(Spec, ArgumentsWithoutName) {
  Spec spec("every=8", "--straggler");
  EXPECT_EQ(spec.name(), "");
  EXPECT_EQ(spec.integer("every", 1, 1, 10), 8);
}

TEST(Spec, CountsTakeSuffixes) {
  const auto count = [](const std::string& text) {
    return Spec("x:n=" + text, "--x").count("n", 0, 1, 1'000'000'000'000);
  };
  EXPECT_EQ(count("61M"), 61'000'000);
  EXPECT_EQ(count("1.5k"), 1'500);
  EXPECT_EQ(count("2G"), 2'000'000'000);
  EXPECT_EQ(count("853018"), 853'018);
  EXPECT_EQ(count("1e3"), 1'000);
  for (const char* bad : {"", "k", "1.5", "61m", "-1", "0", "nan", "inf", "1e30", "1 000"}) {
    EXPECT_THROW(count(bad), UsageError) << bad;
  }
}

TEST(Spec, RefusesWhatNobodyAskedFor) {
  Spec spec("every=8,mean=30", "--straggler");
  spec.integer("every", 1, 1, 10);
  spec.number("mean_ms", 0, 0, 100);
  try {
    spec.finish();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--straggler: unknown key 'mean' in 'every=8,mean=30', did you mean 'mean_ms'? Valid: every, mean_ms");
  }
}

TEST(Spec, RefusesDoubledAndEmptyItems) {
  EXPECT_THROW(Spec("a=1,a=2", "--x"), UsageError);
  EXPECT_THROW(Spec("x:a=1,,b=2", "--x"), UsageError);
  EXPECT_THROW(Spec("x:", "--x"), UsageError);
}

TEST(NearestName, IsByEditDistance) {
  EXPECT_EQ(nearest_name("nestorov", {"sgd", "momentum", "nesterov"}), "nesterov");
  EXPECT_EQ(nearest_name("resnet57", {"resnet20", "resnet56", "vgg16"}), "resnet56");
}

}  // namespace
}  // namespace fluentps
