// One line of a CSV after the other into a text.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "export/csv/vendor_math.h"
#include "export/dump_info.h"
#include "export/number_text.h"

namespace profd::exporting::csv {

class CsvRow {
 public:
  explicit CsvRow(std::string& out) : out_(out) {}
  // The first column of every CSV: the device, or "host".
  CsvRow(std::string& out, const Place& place) : CsvRow(out, place.kind == Place::Kind::kDevice ? place.device : -1) {}
  // The same; -1: the host.
  CsvRow(std::string& out, int64_t device) : out_(out) { device < 0 ? Text("host") : Int(device); }

  // Quoted if it must be, else as it is: tools find rows by names, also by those that a spreadsheet takes for formulas.
  CsvRow& Text(std::string_view text);
  // As it is.
  CsvRow& Raw(std::string_view text) {
    Comma();
    return Append(text);
  }
  // To the cell before, as it is.
  CsvRow& Append(std::string_view text) {
    out_ += text;
    return *this;
  }
  CsvRow& Int(int64_t value) {
    return Add([value](char* p) { return AppendInt(p, value); });
  }
  CsvRow& Int(std::unsigned_integral auto value) {
    return Add([value](char* p) { return AppendUint(p, value); });
  }
  // As Python prints round(value, 3).
  CsvRow& Fixed3(double value) {
    return Add([value](char* p) { return AppendRepr(p, PyRound3(value)); });
  }
  CsvRow& Repr(double value) {
    return Add([value](char* p) { return AppendRepr(p, value); });
  }
  CsvRow& SqlText(double value) {
    return Add([value](char* p) { return AppendSqlText(p, value); });
  }
  // With so many decimals, correctly rounded.
  CsvRow& Decimals(double value, int count) {
    char text[400];  // of the largest double
    Comma();
    out_.append(text, static_cast<size_t>(AppendDecimals(text, value, count) - text));
    return *this;
  }
  // Absolute times end with a tab: spreadsheets keep them as text then.
  CsvRow& Time(int64_t t_ns) {
    return Add([t_ns](char* p) {
      p = AppendMicros(p, t_ns);
      *p++ = '\t';
      return p;
    });
  }
  // A length of time: ns as us with 3 decimals.
  CsvRow& Micros(int64_t ns) {
    return Add([ns](char* p) { return AppendMicros(p, ns); });
  }
  void End() { out_ += '\n'; }

 private:
  template <class Print>
  CsvRow& Add(Print print) {
    char text[41];
    text[0] = ',';
    const char* begin = first_ ? text + 1 : text;
    first_ = false;
    out_.append(begin, static_cast<size_t>(print(text + 1) - begin));
    return *this;
  }
  void Comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }

  std::string& out_;
  bool first_ = true;
};

inline CsvRow& CsvRow::Text(std::string_view text) {
  Comma();
  bool special = false;
  for (const char c : text) special |= c == ',' || c == '"' || c == '\r' || c == '\n';
  if (!special) {
    out_ += text;
    return *this;
  }
  out_ += '"';
  for (char c : text) {
    if (c == '"') out_ += '"';
    out_ += c;
  }
  out_ += '"';
  return *this;
}

}  // namespace profd::exporting::csv
