// The policy for Boost.Math: double throughout, no exceptions, NaN outside of a domain and infinity on
// overflow.
#pragma once
#include <boost/math/policies/policy.hpp>

namespace tapedeck::kernels {

using namespace boost::math::policies;
using Quiet = policy<domain_error<ignore_error>, pole_error<ignore_error>, overflow_error<ignore_error>,
                     underflow_error<ignore_error>, denorm_error<ignore_error>, rounding_error<ignore_error>,
                     evaluation_error<ignore_error>, indeterminate_result_error<ignore_error>,
                     promote_float<false>, promote_double<false>>;

}   // namespace tapedeck::kernels
