// Rounding as the vendor's analyser does it. Its CSVs go through two roundings that differ at ties:
// SQLite's round() in its queries, and Python's round() on the result; HBM's average is made
// with decimals. All three are needed to print the same third decimal.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace profd::exporting::csv {

// SQL round(value, digits), digits 1 to 6: half away from zero, with the little push upwards that
// makes 1.0005 a tie.
double SqlRound(double value, int digits);

// Decimals as they are printed (shortest text of each), added, quantized to 3 decimals, divided by
// `count`, quantized again; half to even both times: "191011.140". "0.000" for none.
std::string DecimalAverage(std::span<const double> values, int64_t count);

// Python's repr: 170898.43833559827, 299.0, 1e-05. `out` has space for 32 bytes.
char* AppendRepr(char* out, double value);

// SQLite's text of a REAL in a TEXT column: 15 digits, always with a point.
char* AppendSqlText(char* out, double value);

}  // namespace profd::exporting::csv
