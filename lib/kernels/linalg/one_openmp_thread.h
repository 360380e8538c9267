// Keeps oneDNN, which uses OpenMP, on the calling thread, since the library has its own threads.
#pragma once

extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace tapedeck::kernels::onednn {

/// While alive, OpenMP regions of this thread run on this thread alone.
class OneOpenmpThread {
 public:
  OneOpenmpThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneOpenmpThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneOpenmpThread(const OneOpenmpThread&) = delete;
  OneOpenmpThread& operator=(const OneOpenmpThread&) = delete;

 private:
  int before_;
};

}   // namespace tapedeck::kernels::onednn
