// Prints predictions of the trained network on a terminal.
#pragma once
#include "data.h"

/// A table: a row for each true digit, a column for each predicted one.
void print_confusion(const tapedeck::Tensor& labels, const tapedeck::Tensor& predicted);
/// Draws digits side by side, each with its prediction.
void print_digits(const Digits& digits, const tapedeck::Tensor& predicted,
                  const std::vector<std::int64_t>& rows);
