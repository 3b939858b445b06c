// Numbers as the exports print them: fast, without locale, rounded like the decimal value they are.
// `out` has space for 32 bytes; each returns the end.
#pragma once

#include <cstdint>

namespace profd::exporting {

char* AppendInt(char* out, int64_t value);
char* AppendUint(char* out, uint64_t value);
// The integer nearest to value * scale as if computed exactly (ties to even). `scale` is a whole
// power of ten up to 1e6; |value * scale| < 9.2e18.
int64_t RoundScaled(double value, double scale);
// Python's round(value, 3): the exact binary value decides, ties to even.
double PyRound3(double value);
// Exactly `count` decimals (3 or 6), correctly rounded, ties to even. `out` has space for 400 bytes.
char* AppendDecimals(char* out, double value, int count);
// Exactly 3 decimals of ns as us: 1767225600040000.000.
char* AppendMicros(char* out, int64_t t_ns);

}  // namespace profd::exporting
