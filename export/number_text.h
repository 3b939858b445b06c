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
// Three digits of 0 to 999.
char* AppendTriple(char* out, uint32_t value);
// One to three decimals, where these and at most 15 digits read as the value again: then there is no other text as
// short. Null: they do not.
char* AppendThousandths(char* out, double value);

// Decimal arithmetic, where doubles would get ties wrong.
__extension__ using WideInt = __int128;
WideInt PowerOfTen(int exponent);
// The integer nearest to num / den, ties to even. `den` > 0.
WideInt NearestEven(WideInt num, WideInt den);
// The shortest decimal number that reads back as `value` > 0 is digits * 10^exponent.
bool ShortestDecimal(double value, int64_t* digits, int* exponent);

}  // namespace profd::exporting
