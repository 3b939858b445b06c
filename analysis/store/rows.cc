#include "analysis/store/rows.h"

#include <fmt/format.h>

#include "analysis/store/tables.h"

namespace profd::analysis {
namespace {

// `quote`: what ends the text, as well.
void Escape(std::string_view text, char quote, std::string* out) {
  for (const char c : text) {
    switch (c) {
      case '\t':
        *out += "\\t";
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\0':
        *out += "\\0";
        break;
      case '\\':
        *out += "\\\\";
        break;
      default:
        if (c == quote) *out += '\\';
        *out += c;
    }
  }
}

}  // namespace

void RowText::Begin() {
  if (!first_) out_ += '\t';
  first_ = false;
}

RowText& RowText::Text(std::string_view text) {
  Begin();
  Escape(text, '\0', &out_);
  return *this;
}

RowText& RowText::Int(int64_t value) {
  Begin();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

RowText& RowText::Uint(uint64_t value) {
  Begin();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

RowText& RowText::Float(double value) {
  Begin();
  AddFloat(value);
  return *this;
}

RowText& RowText::Null() {
  Begin();
  out_ += "\\N";
  return *this;
}

// What is not finite is not a value; views would not show it either.
void RowText::AddFloat(double value) { fmt::format_to(std::back_inserter(out_), "{}", std::isfinite(value) ? value : 0.0); }

RowText& RowText::Texts(const std::vector<std::string>& values) {
  return List(values, [this](const std::string& value) {
    out_ += '\'';
    Escape(value, '\'', &out_);
    out_ += '\'';
  });
}

RowText& RowText::Floats(const std::vector<double>& values) {
  return List(values, [this](double value) { AddFloat(value); });
}

RowBlocks::RowBlocks(const RowHead& head, Send send) : send_(std::move(send)) {
  RowText(&head_).Text(head.run).Int(head.rank).Uint(head.load);
  head_ += '\t';
}

RowText RowBlocks::Row(std::string_view table) {
  Block& block = blocks_[table];
  if (block.rows.size() >= kBlockBytes) Flush(table, &block);
  ++block.count;
  ++by_table_[table];
  ++rows_;
  block.rows += head_;
  return RowText(&block.rows);
}

void RowBlocks::Flush(std::string_view table, Block* block) {
  if (status_.ok() && block->count > 0) status_ = send_(StoreTableOf(table), block->rows, block->count);
  block->rows.clear();
  block->count = 0;
}

Status RowBlocks::Finish() {
  for (auto& [table, block] : blocks_) Flush(table, &block);
  return status_;
}

}  // namespace profd::analysis
