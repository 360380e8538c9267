// Elementary functions of elements: powers, exponentials, logarithms and angles. In: tensors. Out: a tensor of their shape.
#include "autodiff/rules.h"
#include "kernels/map.h"
#include "ops/infer.h"
#include "ops/samples.h"

namespace tapedeck {
namespace {

using namespace samples;

constexpr Op table[] = {
    {.name = "sqrt",
     .doc = "√x.",
     .tensorflow = "Sqrt",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return sqrt(x); }),
     .rule = partials([](auto, auto y) { return 0.5 / y; }),
     .samples = [] { return of_one(0.5, 4, positive(), f64({0.5, 1.0, 1.5811388300841898, 3.0}), "np.sqrt(x)"); }},

    {.name = "rsqrt",
     .doc = "1 / √x.",
     .tensorflow = "Rsqrt",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return 1 / sqrt(x); }),
     .rule = partials([](auto, auto y) { return -0.5 * y * y * y; }),
     .samples = [] { return of_one(0.5, 4, positive(), f64({2.0, 1.0, 0.6324555320336759, 0.3333333333333333}), "1 / np.sqrt(x)"); }},

    {.name = "exp",
     .doc = "eˣ.",
     .tensorflow = "Exp",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return exp(x); }),
     .rule = partials([](auto, auto y) { return y; }),
     .samples = [] { return of_one(-2, 2, signs(), f64({0.22313016014842982, 0.7788007830714049, 1.6487212707001282, 7.38905609893065}), "np.exp(x)"); }},

    {.name = "expm1",
     .doc = "eˣ - 1; accurate near 0.",
     .tensorflow = "Expm1",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return expm1(x); }),
     .rule = partials([](auto, auto y) { return y + 1; }),
     .samples = [] { return of_one(-2, 2, signs(), f64({-0.7768698398515702, -0.22119921692859512, 0.6487212707001282, 6.38905609893065}), "np.expm1(x)"); }},

    {.name = "log",
     .doc = "Natural logarithm of x.",
     .tensorflow = "Log",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return log(x); }),
     .rule = partials([](auto x) { return 1 / x; }),
     .samples = [] { return of_one(0.5, 4, positive(), f64({-1.3862943611198906, 0.0, 0.9162907318741551, 2.1972245773362196}), "np.log(x)"); }},

    {.name = "log1p",
     .doc = "Natural logarithm of 1 + x; accurate near 0.",
     .tensorflow = "Log1p",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return log1p(x); }),
     .rule = partials([](auto x) { return 1 / (1 + x); }),
     .samples = [] { return of_one(-0.5, 4, positive(), f64({0.22314355131420976, 0.6931471805599453, 1.252762968495368, 2.302585092994046}), "np.log1p(x)"); }},

    {.name = "sin",
     .doc = "Sine of x.",
     .tensorflow = "Sin",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return sin(x); }),
     .rule = partials([](auto x) { return cos(x); }),
     .samples = [] { return of_one(-4, 4, signs(), f64({-0.9974949866040544, -0.24740395925452294, 0.479425538604203, 0.9092974268256817}), "np.sin(x)"); }},

    {.name = "cos",
     .doc = "Cosine of x.",
     .tensorflow = "Cos",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return cos(x); }),
     .rule = partials([](auto x) { return -sin(x); }),
     .samples = [] { return of_one(-4, 4, signs(), f64({0.0707372016677029, 0.9689124217106447, 0.8775825618903728, -0.4161468365471424}), "np.cos(x)"); }},

    {.name = "tan",
     .doc = "Tangent of x.",
     .tensorflow = "Tan",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return tan(x); }),
     .rule = partials([](auto, auto y) { return 1 + y * y; }),
     .samples = [] { return of_one(-1.2, 1.2, signs(), f64({-14.101419947171719, -0.25534192122103627, 0.5463024898437905, -2.185039863261519}), "np.tan(x)"); }},

    {.name = "tanh",
     .doc = "Hyperbolic tangent of x.",
     .tensorflow = "Tanh",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return tanh(x); }),
     .rule = partials([](auto, auto y) { return 1 - y * y; }),
     .samples = [] { return of_one(-2, 2, signs(), f64({-0.9051482536448665, -0.24491866240370913, 0.46211715726000973, 0.9640275800758169}), "np.tanh(x)"); }},

    {.name = "sigmoid",
     .doc = "1 / (1 + e⁻ˣ).",
     .tensorflow = "Sigmoid",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return sigmoid(x); }),
     .rule = partials([](auto, auto y) { return y * (1 - y); }),
     .samples = [] { return of_one(-2, 2, signs(), f64({0.18242552380635635, 0.43782349911420193, 0.6224593312018546, 0.8807970779778823}), "1 / (1 + np.exp(-x))"); }},

    {.name = "pow",
     .doc = "a to the power b; the derivative in b is aᵇ·log a where a is positive, else 0.",
     .tensorflow = "Pow",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return pow(a, b); }),
     .rule = partials([](auto a, auto b) { return b * pow(a, b - 1); },
                      [](auto a, auto, auto y) { return where(a > 0, y * log(where(a > 0, a, 1)), 0 * a); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, -2, 2, 1)}},
           {.inputs = {positive(), f64({2, -1.5, 0.5, 1.5})}, .expected = {f64({0.0625, 1.0, 1.5811388300841898, 27.0})}, .oracle = "np.power(a, b)"}};
     }},
};

}  // namespace

Tensor sqrt(Operand x) { return find(table, "sqrt")(x); }
Tensor rsqrt(Operand x) { return find(table, "rsqrt")(x); }
Tensor exp(Operand x) { return find(table, "exp")(x); }
Tensor expm1(Operand x) { return find(table, "expm1")(x); }
Tensor log(Operand x) { return find(table, "log")(x); }
Tensor log1p(Operand x) { return find(table, "log1p")(x); }
Tensor sin(Operand x) { return find(table, "sin")(x); }
Tensor cos(Operand x) { return find(table, "cos")(x); }
Tensor tan(Operand x) { return find(table, "tan")(x); }
Tensor tanh(Operand x) { return find(table, "tanh")(x); }
Tensor sigmoid(Operand x) { return find(table, "sigmoid")(x); }
Tensor pow(Operand a, Operand b) { return find(table, "pow")(a, b); }

std::span<const Op> elementary_ops() { return table; }

}  // namespace tapedeck
