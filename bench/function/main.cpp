// Recorded functions: replays beside the functions themselves and beside what they should reach, in turns, on
// one thread.
//   ninja -C build bench/function_bench && build/bench/function_bench [word...]
#include "report.h"

int main(int argc, char** argv) {
  bench::choose({argv + 1, argv + argc});
  tapedeck::set_num_threads(1);
  bench::run_chains();
  bench::run_fused_loops();
  bench::run_equation_of_state();
  bench::run_isoneutral_mixing();
  bench::run_turbulent_kinetic_energy();
  bench::run_networks();
  bench::run_published();
  bench::run_long_programs();   // which ends with one on all cores
}
