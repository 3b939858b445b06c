// Quotients as the vendor's analyser rounds them: it divides in decimal arithmetic and keeps a few
// decimals, ties to even. Doubles alone get ties wrong, and evenly spaced samples make ties.
#pragma once

#include <cstdint>

#include "export/number_text.h"

namespace profd::exporting {

// num / den with `decimals` decimals (at most 6), the double nearest to that decimal number. `den`
// > 0, |num| < 2^100.
double RoundedQuotient(WideInt num, WideInt den, int decimals);

// MB/s (2^20 bytes per second) with 3 decimals of `bytes` in `ns`; 0 when no time passed.
double RoundedMegaRate(uint64_t bytes, uint64_t ns);

// num / (factor * den) correctly rounded, where factor * den is not a double.
double ExactQuotient(double num, double den, double factor);

}  // namespace profd::exporting
