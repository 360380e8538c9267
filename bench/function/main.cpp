// Compiled functions: replays, compared with the functions themselves and with the goals, alternately, on one
// thread.
//   ninja -C build bench/function_bench && build/bench/function_bench [word...]
//   build/bench/function_bench --write FOLDER [word...]: writes the models' inputs and results as NumPy files
#include "cases.h"
#include "ocean.h"

int main(int argc, char** argv) {
  const std::span<char* const> words(argv + 1, argv + argc);
  const bool writes = words.size() >= 2 && words[0] == std::string("--write");
  bench::choose(words.subspan(writes ? 2 : 0));
  if (writes) bench::write_models_to(words[1]);
  tapedeck::set_num_threads(1);
  if (!writes) {
    bench::run_chains();
    bench::run_fused_loops();
  }
  bench::run_equation_of_state();
  bench::run_isoneutral_mixing();
  bench::run_turbulent_kinetic_energy();
  if (writes) return 0;
  bench::run_networks();
  bench::run_published();
  bench::run_paths();
  bench::run_one_op();
  bench::run_long_programs();   // last, since it ends with a case on all cores
}
