/// The readers of data sets: small files written here, right ones and hostile ones.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "fluentps/error.hpp"
#include "train/dataset.hpp"

namespace fluentps::train {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

void append_big_endian(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

Bytes idx_images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns, std::size_t data) {
  Bytes bytes;
  for (const std::uint32_t word : {std::uint32_t{0x803}, count, rows, columns}) append_big_endian(bytes, word);
  for (std::size_t j = 0; j < data; ++j) bytes.push_back(static_cast<std::uint8_t>(j));
  return bytes;
}

Bytes idx_labels(std::uint32_t count, const Bytes& labels) {
  Bytes bytes;
  append_big_endian(bytes, 0x801);
  append_big_endian(bytes, count);
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class Readers : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fluentps-readers-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(directory_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return directory_ / name;
  }
  fs::path write_gz(const std::string& name, const Bytes& bytes) const {
    gzFile file = gzopen((directory_ / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return directory_ / name;
  }
  std::string idx_refusal(const Bytes& images, const Bytes& labels) const {
    return refusal([&] { read_idx(write("images", images), write("labels", labels), 10); });
  }

  fs::path directory_;
};

TEST_F(Readers, IdxPlainAndGzip) {
  for (const bool gz : {false, true}) {
    const Bytes images = idx_images(3, 2, 4, 24), labels = idx_labels(3, {7, 0, 9});
    const auto set = gz ? read_idx(write_gz("i.gz", images), write_gz("l.gz", labels), 10)
                        : read_idx(write("i", images), write("l", labels), 10);
    EXPECT_EQ(set.form, (ImageForm{1, 2, 4, 10}));
    EXPECT_EQ(set.size(), 3);
    EXPECT_EQ(set.labels, (Bytes{7, 0, 9}));
    ASSERT_EQ(set.pixels.size(), 24U);
    EXPECT_EQ(set.pixels[23], 23);
  }
}

TEST_F(Readers, IdxHostile) {
  const Bytes good = idx_images(3, 2, 4, 24), labels = idx_labels(3, {7, 0, 9});
  EXPECT_HAS(idx_refusal({}, labels), "ends inside its header, found at byte 0");
  EXPECT_HAS(idx_refusal({0, 0}, labels), "ends inside its header, found at byte 2");
  EXPECT_HAS(idx_refusal(labels, labels), "no IDX file of images");
  EXPECT_HAS(idx_refusal(good, good), "no IDX file of labels");
  EXPECT_HAS(idx_refusal(idx_images(3, 2, 4, 23), labels),
             "ends early: its header promises 40 bytes, found at byte 39");
  EXPECT_HAS(idx_refusal(idx_images(3, 2, 4, 25), labels), "goes on after the 40 bytes");
  EXPECT_HAS(idx_refusal(idx_images(0, 2, 4, 0), labels), "has 0 images");
  EXPECT_HAS(idx_refusal(idx_images(3, 0, 4, 0), labels), "has 0 rows");
  EXPECT_HAS(idx_refusal(idx_images(3, 2, 0xFFFFFFFF, 24), labels), "has 4294967295 columns");
  EXPECT_HAS(idx_refusal(good, idx_labels(4, {1, 2, 3, 4})), "has 4 labels for 3 images");
  EXPECT_HAS(idx_refusal(good, idx_labels(3, {1, 2})), "ends early");
  EXPECT_HAS(idx_refusal(good, idx_labels(3, {1, 10, 2})), "holds label 10 at byte 9");
}

// 10^8 images of 4096x4096 would be 1.7 PB: refused because the file ends, without allocating them.
TEST_F(Readers, IdxHeaderDoesNotDecideTheAllocation) {
  EXPECT_HAS(idx_refusal(idx_images(100'000'000, 4096, 4096, 50), idx_labels(1, {1})), "ends early");
}

TEST_F(Readers, IdxEveryTruncationAndDamageOfAGzipIsRefused) {
  const auto images = write("images", idx_images(3, 2, 4, 24));
  const auto whole_path = write_gz("labels.gz", idx_labels(3, {7, 0, 9}));
  Bytes whole(fs::file_size(whole_path));
  std::ifstream(whole_path, std::ios::binary)
      .read(reinterpret_cast<char*>(whole.data()), static_cast<std::streamsize>(whole.size()));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto cut = write("cut.gz", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_NE(refusal([&] { read_idx(images, cut, 10); }), "accepted") << length;
  }
  for (std::size_t at = 10; at < whole.size(); ++at) {  // bytes 3..9 of a gzip header mean nothing to us
    Bytes damaged = whole;
    damaged[at] ^= 0x55;
    const auto path = write("damaged.gz", damaged);
    EXPECT_NE(refusal([&] { read_idx(images, path, 10); }), "accepted") << at;
  }
}

TEST_F(Readers, MissingFashionMnistNamesThePackage) {
  const auto text = refusal([&] { load_data_sets("fashion-mnist", directory_.string()); });
  EXPECT_HAS(text, "train-images-idx3-ubyte.gz");
  EXPECT_HAS(text, "dataset-fashion-mnist");
}

TEST_F(Readers, TrainAndTestMustHaveOneForm) {
  write("train-images-idx3-ubyte", idx_images(1, 4, 4, 16));
  write("t10k-images-idx3-ubyte", idx_images(1, 2, 2, 4));
  write("train-labels-idx1-ubyte", idx_labels(1, {1}));
  write("t10k-labels-idx1-ubyte", idx_labels(1, {1}));
  EXPECT_HAS(refusal([&] { load_data_sets("mnist", directory_.string()); }),
             "training images are 4x4, test images 2x2");
}

/// `count` records: label bytes then 3072 pixels; record r has labels r and pixels r + position.
Bytes cifar(std::size_t count, std::size_t label_bytes) {
  Bytes bytes;
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t b = 0; b < label_bytes; ++b) bytes.push_back(static_cast<std::uint8_t>(r + b * 50));
    for (std::size_t p = 0; p < 3072; ++p) bytes.push_back(static_cast<std::uint8_t>(r + p));
  }
  return bytes;
}

TEST_F(Readers, Cifar10WithSomeOfItsBatches) {
  write("data_batch_2.bin", cifar(3, 1));
  write("data_batch_5.bin", cifar(2, 1));
  write("test_batch.bin", cifar(4, 1));
  const auto sets = load_data_sets("cifar10", directory_.string());
  EXPECT_EQ(sets->train.form, (ImageForm{3, 32, 32, 10}));
  EXPECT_EQ(sets->train.labels, (Bytes{0, 1, 2, 0, 1}));
  EXPECT_EQ(sets->test.size(), 4);
  EXPECT_EQ(sets->train.pixels.size(), 5U * 3072);
  EXPECT_EQ(sets->train.pixels[4 * 3072 + 10], 11);
  EXPECT_EQ(sets->shift, 128);
  EXPECT_EQ(sets->scale, 1.0F / 128);
  EXPECT_EQ(load_data_sets("cifar10", directory_.string()), sets) << "problems of one process share the data";
}

TEST_F(Readers, Cifar100TakesTheFineLabelAndFindsTheFolder) {
  fs::create_directory(directory_ / "cifar-100-binary");
  write("cifar-100-binary/train.bin", cifar(2, 2));
  write("cifar-100-binary/test.bin", cifar(1, 2));
  const auto sets = load_data_sets("cifar100", directory_.string());
  EXPECT_EQ(sets->train.labels, (Bytes{50, 51}));
  EXPECT_EQ(sets->train.form.classes, 100);
  EXPECT_EQ(sets->train.pixels[3072], 1);
}

TEST_F(Readers, CifarHostile) {
  const auto read = [&](const Bytes& bytes) {
    ImageSet set{.form = {3, 32, 32, 10}, .pixels = {}, .labels = {}};
    return refusal([&] { append_cifar(write("data_batch_1.bin", bytes), 1, set); });
  };
  EXPECT_HAS(read({}), "has 0 bytes");
  Bytes cut = cifar(2, 1);
  cut.pop_back();
  EXPECT_HAS(read(cut), "has 6145 bytes, not a multiple of 3073: its last record begins at byte 3073");
  EXPECT_HAS(read(cifar(11, 1)), "holds label 10 at byte 30730");
  ImageSet set{.form = {3, 32, 32, 10}, .pixels = {}, .labels = {}};
  EXPECT_HAS(refusal([&] { append_cifar(directory_ / "none.bin", 1, set); }), "cannot be opened");
  EXPECT_HAS(refusal([&] { append_cifar(directory_, 1, set); }), directory_.string());
}

TEST_F(Readers, MissingCifarSaysWhatToFetch) {
  EXPECT_HAS(refusal([&] { load_data_sets("cifar10", directory_.string()); }), "data_batch_1.bin is missing");
  EXPECT_HAS(refusal([&] { load_data_sets("cifar10", ""); }), "cs.toronto.edu");
  write("data_batch_1.bin", cifar(1, 1));
  EXPECT_HAS(refusal([&] { load_data_sets("cifar10", directory_.string()); }), "test_batch.bin is missing");
}

TEST(DataSetsByName, UnknownNameGivesTheNearest) {
  EXPECT_HAS(refusal([] { load_data_sets("fasion-mnist", ""); }), "did you mean 'fashion-mnist'?");
}

TEST(DataSetsByName, SyntheticAsAskedFor) {
  const auto sets = load_data_sets("synthetic:images=30,test=7,classes=5,channels=3,size=16", "");
  EXPECT_EQ(sets->train.form, (ImageForm{3, 16, 16, 5}));
  EXPECT_EQ(sets->train.size(), 30);
  EXPECT_EQ(sets->test.size(), 7);
  EXPECT_EQ(sets->train.pixels.size(), 30U * 3 * 16 * 16);
  EXPECT_EQ(sets->train.labels[13], 3);
  EXPECT_NE(sets->train.pixels,
            load_data_sets("synthetic:images=30,test=30,classes=5,channels=3,size=16", "")->test.pixels);
  EXPECT_HAS(refusal([] { load_data_sets("synthetic:image=30", ""); }), "did you mean 'images'?");
  EXPECT_HAS(refusal([] { load_data_sets("synthetic:images=10M,size=512", ""); }), "ask for fewer");
}

// Mean 0 and deviation 1 of the real pixels, as the scaling promises.
TEST(DataSetsByName, FashionMnist) {
  if (!fs::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
  const auto sets = load_data_sets("fashion-mnist", "");
  EXPECT_EQ(sets->train.size(), 60'000);
  EXPECT_EQ(sets->test.size(), 10'000);
  EXPECT_EQ(sets->train.form, (ImageForm{1, 28, 28, 10}));
  double sum = 0, square = 0;
  for (const auto pixel : sets->train.pixels) {
    const double value =
        (static_cast<double>(pixel) - static_cast<double>(sets->shift)) * static_cast<double>(sets->scale);
    sum += value;
    square += value * value;
  }
  const auto count = static_cast<double>(sets->train.pixels.size());
  EXPECT_NEAR(sum / count, 0, 1e-3);
  EXPECT_NEAR(square / count, 1, 1e-3);
  std::vector<int> per_class(10);
  for (const auto label : sets->train.labels) ++per_class[label];
  EXPECT_EQ(per_class, std::vector<int>(10, 6'000));
}

TEST(DataSetsByName, Cifar10FromTheEnvironment) {
  const char* directory = std::getenv("FLUENTPS_CIFAR10");
  if (directory == nullptr) GTEST_SKIP() << "set FLUENTPS_CIFAR10 to the folder of the binary version";
  const auto sets = load_data_sets("cifar10", directory);
  EXPECT_EQ(sets->train.size() % 10'000, 0);
  EXPECT_GT(sets->test.size(), 0);
}

}  // namespace
}  // namespace fluentps::train
