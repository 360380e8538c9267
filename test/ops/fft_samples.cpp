// Samples of the ops in lib/ops/linalg/fft.cpp.
#include "ops/linalg/fft.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples fft_table[] = {
    {.op = "fft",
     .oracle = "np.fft.fft(x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 5})}, .attrs = Attrs(FftAttrs{1, false})},
               {.inputs = {spread({37})}, .attrs = Attrs(FftAttrs{1, false})},
               {.inputs = {spread({0, 3})}, .attrs = Attrs(FftAttrs{1, false})},
               {.inputs = {c128({{1.0, -0.25}, {1.75, 0.25}, {-2.0, -1.0}, {-1.25, -0.5}, {-1.25, 1.0}})},
                .attrs = Attrs(FftAttrs{1, false}),
                .expected = {c128({{-1.75, -0.5},
                                   {2.7766287155384513, -1.062533875135},
                                   {-0.37412440997783103, -4.20144487862989},
                                   {-0.44350304783427485, 0.7518514095676789},
                                   {4.790998742273654, 3.7621273441972107}})}}};
         }},

    {.op = "ifft",
     .oracle = "np.fft.ifft(x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 5})}, .attrs = Attrs(FftAttrs{1, true})},
               {.inputs = {spread({37})}, .attrs = Attrs(FftAttrs{1, true})},
               {.inputs = {spread({0, 3})}, .attrs = Attrs(FftAttrs{1, true})},
               {.inputs = {c128({{-1.75, 1.25}, {-0.5, 0.0}, {-0.25, 0.25}, {1.5, 2.0}, {-0.75, -0.75}})},
                .attrs = Attrs(FftAttrs{1, true}),
                .expected = {c128({{-0.35000000000000003, 0.55},
                                   {-0.5664421363293811, -0.3185822091125764},
                                   {-0.491529071359701, 0.8726692399428959},
                                   {0.3505460657346484, 0.14815115330704107},
                                   {-0.6925748580455662, -0.002238184137360566}})}}};
         }},

    {.op = "fft2d",
     .oracle = "np.fft.fft2(x)",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {spread({2, 3, 4})}, .attrs = Attrs(FftAttrs{2, false})},
                                      {.inputs = {spread({5, 1})}, .attrs = Attrs(FftAttrs{2, false})},
                                      {.inputs = {reshape(c128({{1.75, -2.0},
                                                                {1.75, -1.75},
                                                                {-2.0, 0.25},
                                                                {-1.25, -2.0},
                                                                {1.5, 0.5},
                                                                {-0.25, -1.25}}),
                                                          {2, 3})},
                                       .attrs = Attrs(FftAttrs{2, false}),
                                       .expected = {reshape(c128({{1.5, -6.25},
                                                                  {-0.2165063509461096, -7.638139720814412},
                                                                  {0.21650635094610982, 1.8881397208144122},
                                                                  {1.5, -0.75},
                                                                  {0.5024047358083552, -1.3570508075688776},
                                                                  {6.997595264191645, 2.1070508075688767}}),
                                                            {2, 3})}}};
         }},

    {.op = "ifft2d",
     .oracle = "np.fft.ifft2(x)",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 4})}, .attrs = Attrs(FftAttrs{2, true})},
               {.inputs = {spread({5, 1})}, .attrs = Attrs(FftAttrs{2, true})},
               {.inputs = {reshape(
                    c128({{0.75, -0.5}, {-1.5, 0.0}, {-2.0, 1.75}, {-2.0, -1.0}, {-1.0, 0.25}, {-0.75, 0.5}}),
                    {2, 3})},
                .attrs = Attrs(FftAttrs{2, true}),
                .expected = {reshape(c128({{-1.0833333333333333, 0.16666666666666666},
                                           {0.5178418012614795, -0.42224894150898173},
                                           {-0.05950846792814618, -0.4944177251576849},
                                           {0.16666666666666669, 0.24999999999999997},
                                           {0.8206730176127762, 0.10825317547305482},
                                           {0.387660315720557, -0.1082531754730548}}),
                                     {2, 3})}}};
         }},

    {.op = "fft3d",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {spread({2, 3, 2, 4})}, .attrs = Attrs(FftAttrs{3, false})},
                                      {.inputs = {spread({1, 3, 5})}, .attrs = Attrs(FftAttrs{3, false})},
                                      {.inputs = {reshape(c128({{-1.75, 0.75},
                                                                {-1.75, 1.5},
                                                                {-0.25, -2.0},
                                                                {0.25, 1.5},
                                                                {-1.25, -1.25},
                                                                {-0.5, 1.0}}),
                                                          {2, 1, 3})},
                                       .attrs = Attrs(FftAttrs{3, false}),
                                       .expected = {reshape(c128({{-5.25, 1.5},
                                                                  {1.4575317547305484, 4.573557158514987},
                                                                  {-0.7075317547305482, 0.676442841485013},
                                                                  {-2.25, -1.0},
                                                                  {3.1046460717605218, 0.024519052838329003},
                                                                  {-6.854646071760522, -1.274519052838329}}),
                                                            {2, 1, 3})},
                                       .oracle = "np.fft.fftn(x)"}};
         }},

    {.op = "ifft3d",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 2, 4})}, .attrs = Attrs(FftAttrs{3, true})},
               {.inputs = {spread({1, 3, 5})}, .attrs = Attrs(FftAttrs{3, true})},
               {.inputs = {reshape(
                    c128({{0.5, -1.25}, {0.75, 1.0}, {-1.0, -1.0}, {-0.5, 0.0}, {-1.0, 1.5}, {1.75, 1.75}}),
                    {2, 1, 3})},
                .attrs = Attrs(FftAttrs{3, true}),
                .expected = {reshape(c128({{0.08333333333333333, 0.3333333333333333},
                                           {-0.2942574094371279, -0.623504233964073},
                                           {0.21092407610379457, -0.3348290993692602},
                                           {0.0, -0.75},
                                           {-0.07475952641916445, 0.7120190528383289},
                                           {0.5747595264191644, -0.5870190528383289}}),
                                     {2, 1, 3})},
                .oracle = "np.fft.ifftn(x)"}};
         }},

    {.op = "rfft",
     .oracle = "np.fft.rfft(x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 4}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {uniform({37}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {uniform({1}, -1, 1)}, .attrs = Attrs(RealFftAttrs{1, 0})},
               {.inputs = {tensor(std::vector<double>{-1.25, 1.75, 1.25, 2.0, -0.75}, {5})},
                .attrs = Attrs(RealFftAttrs{1, 0}),
                .expected = {c128({{3.0, 0.0},
                                   {-3.5702882373436315, -1.9368023515185289},
                                   {-1.0547117626563682, -2.182755517952548}})}}};
         }},

    {.op = "irfft",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3})}, .attrs = Attrs(RealFftAttrs{1, 4})},
               {.inputs = {spread({19})}, .attrs = Attrs(RealFftAttrs{1, 37})},
               {.inputs = {spread({0, 3})}, .attrs = Attrs(RealFftAttrs{1, 5})},
               {.inputs = {spread({1})}, .attrs = Attrs(RealFftAttrs{1, 1})},
               {.inputs = {c128({{0.25, -0.75}, {-1.25, -2.0}, {-2.0, -1.0}})},
                .attrs = Attrs(RealFftAttrs{1, 5}),
                .expected = {tensor(std::vector<double>{-1.25, 1.5386644122655964, 0.2971004970034329,
                                                        0.11748930637159867, -0.45325421564062784},
                                    {5})},
                .oracle = "np.fft.irfft(x, 5)"}};
         }},

    {.op = "rfft2d",
     .oracle = "np.fft.rfft2(x)",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 4}, -1, 1)}, .attrs = Attrs(RealFftAttrs{2, 0})},
               {.inputs = {uniform({5, 1}, -1, 1)}, .attrs = Attrs(RealFftAttrs{2, 0})},
               {.inputs = {tensor(std::vector<double>{-1.5, 2.0, -1.25, -1.5, 0.5, 1.25, 2.0, -0.25},
                                  {2, 4})},
                .attrs = Attrs(RealFftAttrs{2, 0}),
                .expected = {reshape(
                    c128(
                        {{1.25, 0.0}, {-1.75, -5.0}, {-1.75, 0.0}, {-5.75, 0.0}, {1.25, -2.0}, {-4.75, 0.0}}),
                    {2, 3})}}};
         }},

    {.op = "irfft2d",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 3})}, .attrs = Attrs(RealFftAttrs{2, 5})},
               {.inputs = {spread({5, 1})}, .attrs = Attrs(RealFftAttrs{2, 1})},
               {.inputs = {reshape(
                    c128(
                        {{0.25, -1.25}, {-2.0, -1.25}, {0.5, 1.5}, {0.75, -1.25}, {-1.5, 1.5}, {-1.5, 0.25}}),
                    {2, 3})},
                .attrs = Attrs(RealFftAttrs{2, 4}),
                .expected = {tensor(
                    std::vector<double>{-0.875, 0.1875, 0.875, 0.3125, 0.0625, 0.375, 0.3125, -1.0}, {2, 4})},
                .oracle = "np.fft.irfft2(x, (2, 4))"}};
         }},

    {.op = "rfft3d",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 4}, -1, 1)}, .attrs = Attrs(RealFftAttrs{3, 0})},
               {.inputs = {uniform({1, 3, 5}, -1, 1)}, .attrs = Attrs(RealFftAttrs{3, 0})},
               {.inputs = {tensor(std::vector<double>{-1.75, -1.0, 0.5, 0.75, 0.0, 0.75}, {2, 1, 3})},
                .attrs = Attrs(RealFftAttrs{3, 0}),
                .expected = {reshape(c128({{-0.75, 0.0},
                                           {-1.125, 1.948557158514987},
                                           {-3.75, 0.0},
                                           {-1.875, 0.649519052838329}}),
                                     {2, 1, 2})},
                .oracle = "np.fft.rfftn(x)"}};
         }},

    {.op = "irfft3d",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {spread({2, 3, 2, 3})}, .attrs = Attrs(RealFftAttrs{3, 4})},
               {.inputs = {spread({1, 3, 3})}, .attrs = Attrs(RealFftAttrs{3, 5})},
               {.inputs = {reshape(c128({{-1.5, -0.5}, {2.0, 1.5}, {-2.0, 0.5}, {-2.0, 0.0}}), {2, 1, 2})},
                .attrs = Attrs(RealFftAttrs{3, 3}),
                .expected = {tensor(
                    std::vector<double>{-0.5833333333333333, -1.0163460352255527, -0.150320631441114,
                                        1.4166666666666665, -1.0163460352255527, -0.150320631441114},
                    {2, 1, 3})},
                .oracle = "np.fft.irfftn(x, (2, 1, 3))"}};
         }},
};

}   // namespace

std::span<const OpSamples> fft_samples() { return fft_table; }

}   // namespace tapedeck::test
