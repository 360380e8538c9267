// Threads: one tape per thread, tensors destroyed on other threads, and results that do not depend on the
// number of threads of an op. Catch2's macros are called on the main thread only.
#include <cblas.h>
#include <dlfcn.h>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "closeness.h"
#include "core/sanitizers.h"
#include "resident.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"

extern "C" [[gnu::weak]] int omp_get_max_threads(void);

namespace threads_test {

using namespace tapedeck;

namespace {

constexpr int kThreads = 8;

template <class F> void on_threads(const F& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back(f, i);
  for (std::thread& t : threads)
    t.join();
}

/// A small network's gradients, from a seed.
std::vector<double> gradients_of_network(std::uint64_t seed, const Variable& shared) {
  const random::Key key{seed};
  const Tensor x = random::normal({20, 30}, key.split(0)), w = random::normal({30, 10}, key.split(1));
  GradientTape tape;
  tape.watch(w);
  const Tensor y = tanh(matmul(x, w)) * shared, loss = mean(square(softmax(y) - 0.1));
  const auto [dw, ds] = tape.gradient(loss, w, shared);
  std::vector<double> result = dw.dense().to_vector();
  result.push_back(ds.dense().item());
  return result;
}

std::atomic<int> most_blas_threads = 0;   // in any call of cblas_dgemm since it was last set to 0

/// The number of threads that a call of BLAS would use now.
int blas_threads() {
  constexpr int kOpenMp = 2;
  return openblas_get_parallel() == kOpenMp && omp_get_max_threads ? omp_get_max_threads()
                                                                   : openblas_get_num_threads();
}

}   // namespace

/// Replaces BLAS's own function, and calls it.
extern "C" void cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE a_flag, CBLAS_TRANSPOSE b_flag, blasint m,
                            blasint n, blasint k, double alpha, const double* a, blasint lda, const double* b,
                            blasint ldb, double beta, double* y, blasint ldy) {
  static const auto original = reinterpret_cast<decltype(&cblas_dgemm)>(dlsym(RTLD_NEXT, "cblas_dgemm"));
  for (int most = most_blas_threads, now = blas_threads(); most < now;)
    if (most_blas_threads.compare_exchange_weak(most, now)) break;
  original(order, a_flag, b_flag, m, n, k, alpha, a, lda, b, ldb, beta, y, ldy);
}

TEST_CASE("an output in the first slot of a tape frees its entry when it ends on another thread",
          "[threads]") {
  const Tensor x = tensor(2.0);
  Tensor first = tensor(1.0);
  GradientTape tape;
  tape.watch(first);
  tape.watch(x);
  first = {};   // the output takes its slot
  Tensor y = exp(x);
  CHECK(tape.size() == 1);
  std::thread([ended = std::move(y)]() mutable { ended = {}; }).join();
  CHECK(tape.size() == 0);
}

TEST_CASE("a tape per thread gives the bits of one thread", "[threads]") {
  const Variable shared(tensor(0.7));
  std::vector<std::vector<double>> serial, parallel(kThreads);
  for (int i = 0; i < kThreads; ++i)
    serial.push_back(gradients_of_network(static_cast<std::uint64_t>(i), shared));
  on_threads([&](int i) {
    for (int repeat = 0; repeat < 20; ++repeat)
      parallel[static_cast<std::size_t>(i)] = gradients_of_network(static_cast<std::uint64_t>(i), shared);
  });
  CHECK(serial == parallel);
}

TEST_CASE("a tape records only its own thread", "[threads]") {
  const Tensor x = tensor(2.0);
  GradientTape tape;
  tape.watch(x);
  Tensor elsewhere;
  std::thread([&] { elsewhere = x * x; }).join();
  CHECK(tape.size() == 0);
  CHECK_FALSE(tape.gradient(elsewhere, x).defined());
}

TEST_CASE("tensors that end on another thread free their entries", "[threads]") {
  const Tensor x = ones({64, 64});
  const std::int64_t base = live_bytes();
  {
    GradientTape tape;
    tape.watch(x);
    for (int i = 0; i < 100; ++i) {
      Tensor y = exp(x);
      for (int k = 0; k < 10; ++k)
        y = y * x;
      std::thread([gone = std::move(y)]() mutable { gone = {}; }).join();
    }
    CHECK(tape.size() == 0);
    const Tensor y = x * x;
    CHECK(tape.size() == 1);
    CHECK(tape.gradient(y, x).dense().at({0, 0}) == 2);
  }
  CHECK(live_bytes() == base);
}

TEST_CASE("a tensor that ends on a thread that has an older tape frees its entry", "[threads]") {
  const Tensor x = tensor(2.0);
  std::promise<void> begun;
  std::promise<Tensor> handed;
  std::thread other([&] {
    const GradientTape older;
    begun.set_value();
    (void)handed.get_future().get();
  });
  begun.get_future().wait();
  GradientTape tape;
  tape.watch(x);
  handed.set_value(exp(x));
  other.join();
  CHECK(tape.size() == 0);
}

TEST_CASE("many threads drop what one tape records", "[threads]") {
  const Tensor x = tensor(1.0);
  GradientTape tape;
  tape.watch(x);
  std::vector<std::vector<Tensor>> mine(kThreads);
  for (auto& list : mine)
    for (int k = 0; k < 200; ++k)
      list.push_back(exp(x) * 2);
  CHECK(tape.size() == 2 * 200 * kThreads);
  std::atomic<bool> go = false;
  std::vector<std::thread> threads;
  for (auto& list : mine)
    threads.emplace_back([&] {
      while (!go) {}
      list.clear();
    });
  go = true;
  Tensor y = x;
  for (int k = 0; k < 1000; ++k)
    y = y * x;
  for (std::thread& t : threads)
    t.join();
  CHECK(tape.size() == 1000);
  CHECK(tape.gradient(y, x).dense().item() == 1001);
}

TEST_CASE("tensors outlive the thread that created them", "[threads]") {
  std::vector<Tensor> results(kThreads);
  on_threads([&](int i) { results[static_cast<std::size_t>(i)] = full({i % 2 ? 3 : 3000}, i) + 1; });
  for (int i = 0; i < kThreads; ++i)
    CHECK(results[static_cast<std::size_t>(i)].at({2}) == i + 1);
}

TEST_CASE("a thread that only makes a tensor leaves the rest of its memory to others", "[threads][memory]") {
  if (kSanitized) return;   // they keep memory themselves
  const auto rounds = [](int n) {
    for (int i = 0; i < n; ++i) {
      Tensor x;
      std::thread([&] { x = tensor(1.0); }).join();
    }
  };
  rounds(200);
  const long before = test::resident_pages();
  rounds(2000);   // 12 KB for each thread would be 6000 pages
  CHECK(test::resident_pages() - before < 1500);
}

TEST_CASE("a gradient is the same with one thread in an op and with several", "[threads]") {
  const random::Key key{3};
  const Tensor a = random::normal({400, 500}, key.split(0)), b = random::normal({500, 300}, key.split(1)),
               row = random::normal({300}, key.split(2));
  const auto work = [&] {
    GradientTape tape;
    for (const Tensor& t : {a, b, row})
      tape.watch(t);
    const Tensor y = tanh(matmul(a, b) * 0.01 + row), loss = sum(log_softmax(y)) + sum(max(y, 0)) +
                                                             mean(exp(a)) + sum(square(b), 1).at<float>({7});
    std::vector<double> all = {loss.item<double>()};
    for (const Gradient& g : tape.gradient(loss, a, b, row)) {
      const std::vector<double> v = g.dense().to_vector();
      all.insert(all.end(), v.begin(), v.end());
    }
    return all;
  };
  const std::vector<double> one = work();
  for (const int n : {2, 3, 4}) {
    set_num_threads(n);
    CHECK(num_threads() == n);
    CHECK(work() == one);
  }
  set_num_threads(1);
  CHECK_THROWS_AS(set_num_threads(0), ArgumentError);
  CHECK(num_threads() == 1);
}

TEST_CASE("ops that use several threads run on several threads at once", "[threads]") {
  set_num_threads(2);
  const Tensor x = random::normal({500, 2000}, {5});
  const double expected = sum(tanh(x)).item();
  std::atomic<int> wrong = 0;
  on_threads([&](int) {
    for (int k = 0; k < 5; ++k)
      wrong += sum(tanh(x)).item() != expected;
  });
  set_num_threads(1);
  CHECK(wrong == 0);
}

TEST_CASE("exceptions on an op's threads are rethrown by the op", "[threads][errors]") {
  const Tensor x = ones({1000, 400});
  const auto refuse = [](auto t) {
    throw std::runtime_error("refused");
    return t;
  };
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    CHECK_THROWS_WITH(map(refuse, x), "refused");
  }
  set_num_threads(1);
}

TEST_CASE("every piece of an op runs once, on any number of threads", "[threads]") {
  const Tensor x = ones({3, 171, 401});
  std::atomic<std::int64_t> vectors = 0;
  const auto count = [&](auto v) {
    ++vectors;
    return v + v;
  };
  map(count, x);
  const std::int64_t expected = vectors;
  for (const int threads : {2, 3, 7, 64, 65, 100}) {
    CAPTURE(threads);
    set_num_threads(threads);
    vectors = 0;
    CHECK(sum(map(count, x)).item() == 2.0 * static_cast<double>(x.size()));
    CHECK(vectors == expected);
  }
  set_num_threads(1);
}

TEST_CASE("BLAS works on the calling thread, and keeps the user's number of threads", "[threads]") {
  const random::Key key{7};
  const Shape shape{768, 768};
  const Tensor a = random::normal(shape, key.split(0), DType::f64),
               b = random::normal(shape, key.split(1), DType::f64);   // large f32 products may run on oneDNN
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(1);
  const Tensor expected = matmul(a, b);
  for (const int n : {1, 2}) {
    set_num_threads(n);
    openblas_set_num_threads(2);
    most_blas_threads = 0;
    const Tensor y = matmul(a, b);
    CHECK(most_blas_threads == 1);
    CHECK(openblas_get_num_threads() == 2);
    CHECK(same_bits(y, expected));
  }
  set_num_threads(1);

  // Products that overlap in time do not mistake each other's limit for the number that the user set.
  on_threads([&](int i) {
    for (int k = 0; k < 50; ++k)
      matmul(a, slice(b, {0, 0}, {-1, 1 + i + k % 2}));
  });
  CHECK(openblas_get_num_threads() == 2);
  CHECK(most_blas_threads == 1);
  openblas_set_num_threads(before);
}

TEST_CASE("a handler of warnings may cause others, and replace itself", "[threads]") {
  const auto watch = [](DType dtype) {
    GradientTape tape;
    tape.watch(tensor({1}, dtype));   // which warns
  };
  int first = 0, second = 0;
  set_warning_handler([&](std::string_view) {
    ++first;
    set_warning_handler([&](std::string_view) { ++second; });
    watch(DType::u32);
  });
  watch(DType::u16);
  set_warning_handler({});
  CHECK(first == 1);
  CHECK(second == 1);
}

TEST_CASE("warnings may come from many threads", "[threads]") {
  std::atomic<int> told = 0;
  set_warning_handler([&](std::string_view) { ++told; });
  on_threads([](int) {
    const Tensor flags = tensor({0, 1}, DType::u8);
    GradientTape tape;
    for (int k = 0; k < 10; ++k)
      tape.watch(flags);
  });
  set_warning_handler({});
  CHECK(told == 5);
}

}   // namespace threads_test
