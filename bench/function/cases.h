// The cases of compiled functions, each in a file of its own.
#pragma once
#include "../report.h"

namespace bench {

void run_chains();
void run_fused_loops();
void run_equation_of_state();
void run_isoneutral_mixing();
void run_turbulent_kinetic_energy();
void run_networks();
void run_long_programs();
void run_published();
void run_paths();
void run_one_op();

}   // namespace bench
