// Input and output of training: batches, tables, logs. Catch2's macros are called on the main
// thread only.
#include <catch2/catch.hpp>
#include <limits>

#include <algorithm>
#include <atomic>
#include <set>

#include <nlohmann/json.hpp>

#include "message_of.h"
#include "tapedeck/csv.h"
#include "tapedeck/dataset.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training_log.h"
#include "temporary_folder.h"

namespace dataset_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Places = std::vector<std::int64_t>;

/// Example i is 10 i, 10 i + 1 and the label i.
Dataset examples(std::int64_t n) { return Dataset({reshape(arange(n), {n, 1}) * 10 + arange(2), arange(n)}); }

std::vector<Places> labels_of(Epoch&& epoch) {
  std::vector<Places> all;
  for (const Batch& batch : epoch) {
    REQUIRE(batch.size() == 2);
    REQUIRE(batch[0].shape() == Shape{batch[1].size(), 2});
    const Tensor difference = batch[0] - reshape(batch[1], {-1, 1}) * 10;
    for (std::int64_t i = 0; i < batch[1].size(); ++i)
      REQUIRE((difference.at<std::int64_t>({i, 0}) == 0 && difference.at<std::int64_t>({i, 1}) == 1));
    all.push_back(batch[1].to_vector<std::int64_t>());
  }
  return all;
}

}   // namespace

TEST_CASE("a loader cuts a dataset into batches", "[data]") {
  const Dataset data = examples(7);
  CHECK(data.size() == 7);
  CHECK(data.at(tensor({5, 2}))[1].to_vector<std::int64_t>() == Places{5, 2});
  CHECK(data.range(2, 4).tensors()[0].to_vector<std::int64_t>() == Places{20, 21, 30, 31});
  for (const std::int64_t prefetch : {0, 1, 5}) {
    CHECK(labels_of(DataLoader(data, {.batch = 3, .prefetch = prefetch}).epoch(0)) ==
          std::vector<Places>{{0, 1, 2}, {3, 4, 5}, {6}});
    const DataLoader whole(data, {.batch = 3, .drop_remainder = true, .prefetch = prefetch});
    CHECK(whole.size() == 2);
    CHECK(labels_of(whole.epoch(9)) == std::vector<Places>{{0, 1, 2}, {3, 4, 5}});
    CHECK(labels_of(whole.epoch(9, 1)) == std::vector<Places>{{3, 4, 5}});
    CHECK(labels_of(whole.epoch(9, 2)).empty());
    CHECK(labels_of(DataLoader(data, {.batch = 100, .prefetch = prefetch}).epoch(0)).size() == 1);
    CHECK(
        labels_of(DataLoader(data, {.batch = std::numeric_limits<std::int64_t>::max(), .prefetch = prefetch})
                      .epoch(0))
            .size() == 1);
    CHECK(labels_of(DataLoader(examples(0), {.prefetch = prefetch}).epoch(0)).empty());
  }
}

TEST_CASE("an epoch can be looped over only once", "[data]") {
  const DataLoader loader(examples(3), {.batch = 2});
  Epoch epoch = loader.epoch(4);
  for (const Batch& b : epoch)
    (void)b;
  CHECK(
      message_of<ArgumentError>([&] { (void)epoch.begin(); }) ==
      "data_loader: epoch 4 has been looped over already; use loader.epoch(4) for the same batches again, or "
      "another number");
}

TEST_CASE("shuffled batches depend on key, epoch and number alone", "[data][threads]") {
  const auto batches = [](std::int64_t prefetch, std::uint64_t seed, std::int64_t epoch,
                          std::int64_t first = 0) {
    return labels_of(DataLoader(examples(1000),
                                {.batch = 64, .shuffle = true, .key = {.seed = seed}, .prefetch = prefetch})
                         .epoch(epoch, first));
  };
  const std::vector<Places> expected = batches(0, 1, 3);
  Places all;
  for (const Places& p : expected)
    all.insert(all.end(), p.begin(), p.end());
  CHECK_FALSE(std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  CHECK(all == arange(1000).to_vector<std::int64_t>());
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    for (const std::int64_t prefetch : {0, 1, 3, 100})
      CHECK(batches(prefetch, 1, 3) == expected);
  }
  set_num_threads(1);
  CHECK(batches(2, 1, 3, 4) == std::vector<Places>(expected.begin() + 4, expected.end()));
  CHECK(batches(2, 1, 4) != expected);
  CHECK(batches(2, 2, 3) != expected);
}

TEST_CASE("a transform gets a different key for each batch", "[data][threads]") {
  const auto noise = [](std::int64_t prefetch, std::int64_t epoch, std::int64_t first = 0) {
    const DataLoader loader(
        examples(10),
        {.batch = 4, .key = {.seed = 1}, .prefetch = prefetch, .transform = [](Batch b, random::Key key) {
           b[1] = random::normal({1}, key);
           return b;
         }});
    std::vector<double> all;
    for (const Batch& b : loader.epoch(epoch, first))
      all.push_back(b[1].item());
    return all;
  };
  const std::vector<double> expected = noise(0, 2), others = noise(0, 3);
  REQUIRE(expected.size() == 3);
  CHECK(std::set<double>(expected.begin(), expected.end()).size() == 3);
  for (const double v : others)
    CHECK(std::count(expected.begin(), expected.end(), v) == 0);
  CHECK(noise(2, 2) == expected);
  CHECK(noise(2, 2, 1) == std::vector<double>(expected.begin() + 1, expected.end()));
}

TEST_CASE("an exception while a batch is made is thrown where the batch is requested", "[data][threads]") {
  for (const std::int64_t prefetch : {0, 1, 8}) {
    const DataLoader loader(examples(10),
                            {.batch = 2, .prefetch = prefetch, .transform = [](Batch b, random::Key) {
                               if (b[1].at({0}) == 4) throw ArgumentError("not this one");
                               return b;
                             }});
    int seen = 0;
    CHECK(message_of([&] {
            for ([[maybe_unused]] const Batch& b : loader.epoch(0))
              ++seen;
          }) == "not this one");
    CHECK(seen == 2);
    // Stopping early does not wait for the remaining batches.
    for ([[maybe_unused]] const Batch& b : loader.epoch(0))
      break;
    loader.epoch(0);
  }
}

TEST_CASE("batches are not recorded, and their memory is used again", "[data]") {
  const DataLoader loader(Dataset({ones({1000, 100})}), {.batch = 10, .shuffle = true});
  std::int64_t most = 0;
  Recording recording;
  const std::int64_t before = live_bytes();
  for (int epoch = 0; epoch < 3; ++epoch)
    for ([[maybe_unused]] const Batch& b : loader.epoch(epoch))
      most = std::max(most, live_bytes() - before);
  CHECK(most <= 8 * 5000);   // of 4000 bytes each: the current batch, three that are ready or in preparation,
                             // and the order of the examples
}

TEST_CASE("a batch that is released is freed before the next one is made", "[data][threads]") {
  constexpr int kBatches = 16;
  std::int64_t before = 0, most = 0;
  std::atomic<int> begun = 0;
  const auto twice = [&](Batch b, const random::Key&) {
    most = std::max(most, live_bytes() - before);
    ++begun;
    begun.notify_one();
    b[0] = b[0] * 2.0;
    return b;
  };
  const DataLoader loader(Dataset({ones({4 * kBatches, 1024})}),
                          {.batch = 4, .prefetch = 1, .transform = twice});
  before = live_bytes();
  int taken = 0;
  for ([[maybe_unused]] const Batch& b : loader.epoch(0)) {   // held until the next one is in the making
    const int next = std::min(++taken + 1, kBatches);
    for (int n = begun; n < next; n = begun)
      begun.wait(n);
  }
  CHECK(taken == kBatches);
  CHECK(most == 4 * 1024 * 4);
}

TEST_CASE("loaders and datasets reject invalid arguments", "[data][errors]") {
  CHECK(message_of<ArgumentError>([] { Dataset({}); }) == "dataset: no tensors given");
  CHECK(message_of<ShapeError>([] { Dataset({tensor(1.0)}); }) ==
        "dataset: f32[] has no axis that counts examples");
  CHECK(message_of<ShapeError>([] {
          Dataset({ones({2}), ones({3, 2})});
        }) == "dataset: the tensors differ in length: f32[2], f32[3,2]");
  CHECK(message_of<ArgumentError>([] { examples(3).range(2, 4); }) ==
        "dataset: the range from 2 to 4 is not within 3 examples");
  CHECK(message_of<ArgumentError>([] { DataLoader(examples(3), {.batch = 0}); }) ==
        "data_loader: the batch is 0; use 1 or more");
  CHECK(message_of<ArgumentError>([] { DataLoader(examples(3), {.prefetch = -1}); }) ==
        "data_loader: prefetch is -1; use 0 or more");
  CHECK(message_of<ArgumentError>([] { DataLoader(examples(3)).epoch(0, 2); }) ==
        "data_loader: there is no batch 2 in epoch 0; an epoch has 1");
}

TEST_CASE("csv: tables of numbers", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.csv";
  const auto message = [&](const std::string& text, CsvOptions options = {}) {
    write_text(path, text);
    const std::string what = message_of<FileError>([&] { load_csv(path, options); }),
                      prefix = "load_csv: " + path + ": ";
    return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
  };
  CHECK(message("a, b,c d\r\n1, 2.5 ,-3e2\r\n\r\n inf,nan,0.1", {.has_header = true, .dtype = DType::f64}) ==
        "no error");
  const CsvTable table = load_csv(path, {.has_header = true, .dtype = DType::f64});
  CHECK(table.names == std::vector<std::string>{"a", "b", "c d"});
  CHECK(table.values.spec() == Spec{DType::f64, {2, 3}});
  CHECK((table.values.at({0, 1}) == 2.5 && table.values.at({0, 2}) == -300 &&
         table.values.at({1, 2}) == 0.1 && std::isnan(table.values.at({1, 1}))));
  CHECK(message("1;2\n3;4\n", {.separator = ';', .dtype = DType::i32}) == "no error");
  CHECK(load_csv(path, {.separator = ';', .dtype = DType::i32}).values.to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{1, 2, 3, 4});
  CHECK(message("") == "no error");
  CHECK(load_csv(path).values.shape() == Shape{0, 0});
  CHECK(message("1,2\n3,x4\n") == "line 2: \"x4\" in column 2 is not a number");
  CHECK(message("1,2\n\n3,4 5\n") == "line 3: \"4 5\" in column 2 is not a number");
  CHECK(message("1,2,\n") == "line 1: \"\" in column 3 is not a number");
  CHECK(message("1,2\n3\n") == "line 2 has 1 columns, others have 2");
  CHECK(message("1,2\n3,4,5\n") == "line 2 has 3 columns, others have 2");
  CHECK(message("a table,of ones\n1\n1,1\n", {.has_header = true}) == "line 3 has 2 columns, others have 1");
  CHECK(message("a,b,c\n\n", {.has_header = true}) == "no error");
  CHECK(load_csv(path, {.has_header = true}).values.shape() == Shape{0, 3});
  CHECK(message("\xef\xbb\xbf"
                "a,b\n1,2\n",
                {.has_header = true}) == "no error");
  CHECK(load_csv(path, {.has_header = true}).names[0] == "a");
  CHECK(message("\x1f\x8b\x08\x00\x01") == "looks like gzip; decompress it first");
  CHECK(message("1,\x1b[31m\xff") == "line 1: \"\\x1b[31m\\xff\" in column 2 is not a number");
  CHECK(message("\nlength,width\n1,2\n") ==
        "line 2: \"length\" in column 1 is not a number; if the first line has names, set .has_header");
  CHECK(message("a,b\nc,d\n", {.has_header = true}) == "line 2: \"c\" in column 1 is not a number");
  CHECK(message("a;b\n1;2\n") ==
        "line 1: \"a;b\" in column 1 is not a number; if ';' separates, set .separator");
  CHECK(message("a b,c\n1\t2,3\n", {.has_header = true, .dtype = DType::i32}) ==
        "line 2: \"1\\x092\" in column 1 is not a number; if '\\t' separates, set .separator");
  CHECK(message("1;\"2;3\"\n", {.separator = ';'}) == "line 1: \"2;3\" in column 2 is not a number");
  CHECK(message(std::string(1'000'000, 'x')).size() < 300);

  const auto names = [&](const std::string& header, char separator = ',') {
    write_text(path, header + "\n");
    return load_csv(path, {.separator = separator, .has_header = true}).names;
  };
  using Names = std::vector<std::string>;
  CHECK(names("\"a,b\",\"c\"") == Names{"a,b", "c"});
  CHECK(names(" \"a \"\"b\"\"\" , c\"d , \"\",\"\"\"\"") == Names{"a \"b\"", "c\"d", "", "\""});
  CHECK(names("\"a;b\";\"c,d\"", ';') == Names{"a;b", "c,d"});
  CHECK(message("\"1\",2\n3,\"4\"\n") == "no error");
  CHECK(load_csv(path).values.to_vector() == std::vector<double>{1, 2, 3, 4});
  CHECK(message("\"a,b\nc\"\n", {.has_header = true}) == "line 1: a quote has no end");
  CHECK(message("\"a\"b,c\n", {.has_header = true}) == "line 1: \"b\" follows the end of a quote");
  CHECK(message("\"a,b\",c\n1,2,3\n", {.has_header = true}) == "no error");
  for (const char c : std::string_view(".-+eExXinfa059\"\n\r\0", 18))
    CHECK_THROWS_AS(load_csv(path, {.separator = c}), ArgumentError);
  CHECK(message_of<ArgumentError>([&] { load_csv(path, {.separator = '.'}); }) ==
        "load_csv: the separator is '.', which may be a part of numbers, quotes or lines; use one such as "
        "',', ';' or '\\t'");
  for (const char c : std::string_view(",;\t |:")) {
    write_text(path, std::string("1.5") + c + "-2e3\n");
    CHECK(load_csv(path, {.separator = c}).values.to_vector() == std::vector<double>{1.5, -2000});
  }
}

// The limits of each dtype, and the numbers beside them.
TEST_CASE("csv: cells at the ends of a row of tabs may be empty", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tsv";
  const auto write = [&](const char* text) { std::ofstream(path) << text; };
  write("\ta\tb\t\r\n0\t1.5\t2\t7\n");
  const CsvTable table = load_csv(path, {.separator = '\t', .has_header = true});
  CHECK(table.names == std::vector<std::string>{"", "a", "b", ""});
  CHECK(table.values.shape() == Shape{1, 4});
}

TEST_CASE("csv: numbers are exact or an error", "[data][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.csv";
  const auto loaded = [&](const std::string& cell, DType dtype) {
    write_text(path, "0," + cell + "\n");
    return load_csv(path, {.dtype = dtype}).values;
  };
  const auto message = [&](const std::string& cell, DType dtype) {
    const std::string what = message_of<FileError>([&] { loaded(cell, dtype); }),
                      prefix = "load_csv: " + path + ": line 1: \"" + cell + "\" in column 2 ";
    return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
  };
  struct Limits {
    DType dtype;
    const char *least, *most, *below, *above;
  };
  for (const Limits& l :
       {Limits{DType::i8, "-128", "127", "-129", "128"},
        Limits{DType::i32, "-2147483648", "2147483647", "-2147483649", "2147483648"},
        Limits{DType::i64, "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
               "9223372036854775808"},
        Limits{DType::u8, "0", "255", "-1", "300"}, Limits{DType::boolean, "0", "1", "-1", "2"}}) {
    const std::string name(name_of(l.dtype));
    INFO(name);
    CHECK(loaded(l.least, l.dtype).at<std::int64_t>({0, 1}) == std::stoll(l.least));
    CHECK(loaded(l.most, l.dtype).at<std::int64_t>({0, 1}) == std::stoll(l.most));
    CHECK(message(l.below, l.dtype) == "is out of range for " + name);
    CHECK(message(l.above, l.dtype) == "is out of range for " + name);
    CHECK(message("0.5", l.dtype) == "is not a whole number, which " + name + " needs");
    CHECK(message("nan", l.dtype) == "is not a whole number, which " + name + " needs");
    CHECK(message("x", l.dtype) == "is not a number");
  }
  CHECK(loaded("9007199254740993", DType::i64).at<std::int64_t>({0, 1}) == 9007199254740993);
  CHECK(message("1e39", DType::f32) == "is out of range for f32");
  CHECK(message("1e39", DType::c64) == "is out of range for c64");
  CHECK(message("1e400", DType::f64) == "is out of range for f64");
  CHECK(message("65520", DType::f16) == "is out of range for f16");
  CHECK(message("-3.4e38", DType::bf16) == "is out of range for bf16");
  // Just above the middle between two numbers of the dtype: in the middle, if it was rounded before.
  CHECK(loaded("1.00000005960464477540", DType::f32).at({0, 1}) == 1 + std::exp2(-23));
  CHECK(loaded("1.00000005960464477538", DType::f32).at({0, 1}) == 1);
  CHECK(real(loaded("1.00000005960464477540", DType::c64)).at({0, 1}) == 1 + std::exp2(-23));
  CHECK(astype(loaded("1.000488281250001", DType::f16), DType::f64).at({0, 1}) == 1 + std::exp2(-10));
  CHECK(astype(loaded("1.000488281249999", DType::f16), DType::f64).at({0, 1}) == 1);
  CHECK(astype(loaded("1.003906250000001", DType::bf16), DType::f64).at({0, 1}) == 1 + std::exp2(-7));
  // The same by less than the last bit of an f64, and in other ways to write numbers.
  const std::string zeros(30, '0'), nines(30, '9');
  const auto half = [&](const std::string& cell, DType t = DType::f16) {
    return astype(loaded(cell, t), DType::f64).at({0, 1});
  };
  const double above = 1 + std::exp2(-10);
  CHECK(half("1.00048828125") == 1);
  CHECK(half("1.00048828125" + zeros) == 1);
  CHECK(half("1.00048828125" + zeros + "1") == above);
  CHECK(half("1.00048828124" + nines) == 1);
  CHECK(half("-001.00048828125" + zeros + "1e+0") == -above);
  CHECK(half("0.000000100048828125" + zeros + "1e7") == above);
  CHECK(half("100048828125" + zeros + "1e-42") == above);
  CHECK(half("100048828125" + zeros + "e-41") == 1);
  CHECK(half("1.00146484375" + zeros + "1") == 1 + std::exp2(-9));   // here the middle is rounded up
  CHECK(half("1.00146484374" + nines) == above);
  CHECK(half("2.98023223876953125e-8") == 0);
  CHECK(half("2.98023223876953125" + zeros + "1e-8") == std::exp2(-24));
  CHECK(half("1.00390625" + zeros + "1", DType::bf16) == 1 + std::exp2(-7));
  CHECK(half("1.00390624" + nines, DType::bf16) == 1);
  CHECK(half("65519." + nines) == 65504);
  CHECK(loaded("inf", DType::f16).at({0, 1}) == INFINITY);
  CHECK(loaded("-1e-60", DType::f16).at({0, 1}) == 0);
  CHECK(loaded("1e-45", DType::f32).at({0, 1}) == std::numeric_limits<float>::denorm_min());
  CHECK(loaded("inf", DType::f32).at({0, 1}) == INFINITY);
  CHECK(loaded("1e39", DType::f64).at({0, 1}) == 1e39);
  CHECK(loaded("1e-60", DType::f32).at({0, 1}) == 0);
  for (const DType t : {DType::f16, DType::f32, DType::f64}) {   // too near 0 for any of them
    CHECK(std::signbit(loaded("-1e-99999999999999999999", t).at({0, 1})));
    CHECK(message("1e-400x", t) == "is not a number");
    CHECK(message("1e400x", t) == "is not a number");
    CHECK(loaded("0." + std::string(400, '0') + "1", t).at({0, 1}) == 0);
    CHECK(message("1e99999999999999999999", t) == "is out of range for " + std::string(name_of(t)));
  }
}

TEST_CASE("training log: a JSON object a line", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder / "log.jsonl";
  const std::string text = "two\nlines and a \"quote\"";
  {
    TrainingLog log(path);
    log.write({{"step", 3}, {"loss", 0.1}, {"note", text}, {"best", true}});
    log.write({{"loss", std::nan("")}, {"size", std::size_t{7}}, {"bytes", "\xff"}});
    log.write({});
    CHECK(text_of(path) ==
          "{\"step\":3,\"loss\":0.1,\"note\":\"two\\nlines and a "
          "\\\"quote\\\"\",\"best\":true}\n{\"loss\":null,\"size\":7,\"bytes\":\"\xef\xbf\xbd\"}\n{}\n");
  }
  const std::string whole = text_of(path);
  {
    TrainingLog log(folder / "numbers");
    log.write({{"most", UINT64_MAX}, {"least", INT64_MIN}, {"small", std::uint8_t{255}}});
    CHECK(message_of<ArgumentError>([&] {
            log.write({{"loss", 1}, {"step", 2}, {"loss", 3}});
          }) == "training_log: a line has the field \"loss\" twice");
    CHECK_THROWS_AS(log.write({{"\xff", 1}, {"\xfe", 2}}), ArgumentError);   // both are U+FFFD
    CHECK(text_of(folder / "numbers") ==
          "{\"most\":18446744073709551615,\"least\":-9223372036854775808,\"small\":255}\n");
  }
  CHECK(nlohmann::json::parse(whole.substr(0, whole.find('\n')))["note"] == text);
  write_text(path, whole + "{\"step\":4,\"lo");
  TrainingLog(path).write({{"step", 4}});
  CHECK(text_of(path) == whole + "{\"step\":4}\n");
  write_text(path, "{\"" + std::string(10'000, 'x'));   // over several reads
  TrainingLog(path).write({{"step", 0}});
  CHECK(text_of(path) == "{\"step\":0}\n");
  TrainingLog(folder / "deep/er/log").write({{"step", 1}});   // makes its folders
  CHECK(text_of(folder / "deep/er/log") == "{\"step\":1}\n");
  CHECK_THAT(message_of<FileError>([&] { TrainingLog(path + "/log"); }),
             Catch::Matchers::StartsWith("training_log: " + path + "/log: its folder cannot be created: "));
  CHECK(message_of<FileError>([&] { TrainingLog(folder / "deep"); }) ==
        "training_log: " + folder.path() + "/deep: cannot be opened: Is a directory");
}

TEST_CASE("training log: lines after a size are taken back", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder / "log.jsonl";
  TrainingLog log(path);
  CHECK(log.size() == 0);
  log.write({{"step", 1}});
  const std::int64_t one = log.size();
  CHECK(one == 11);
  log.write({{"step", 2}}), log.write({{"step", 3}});
  log.truncate(one);
  log.write({{"step", 4}});
  CHECK(text_of(path) == "{\"step\":1}\n{\"step\":4}\n");
  for (const std::int64_t size : {-1, 5, 23})
    CHECK(message_of<ArgumentError>([&] { log.truncate(size); }) ==
          "training_log: " + path + ": no line ends after " + std::to_string(size) +
              " of 22 bytes; use a number that size() returned");
  log.truncate(0);
  CHECK(text_of(path).empty());
}

TEST_CASE("training log: a log stays in the file that was opened, even if its path changes", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder / "log.jsonl";
  TrainingLog log(path);
  log.write({{"step", 1}});
  const std::int64_t one = log.size();
  std::filesystem::rename(path, folder / "old");   // as by a program that rotates logs
  log.write({{"step", 2}});
  CHECK(log.size() == 22);
  write_text(path, "{}\n");
  log.write({{"step", 3}});
  CHECK(log.size() == 33);
  log.truncate(one);
  CHECK(text_of(folder / "old") == "{\"step\":1}\n");
  CHECK(text_of(path) == "{}\n");
}

}   // namespace dataset_test
