#include "analysis/report_xlsx.h"

#include <fmt/format.h>
#include <xlsxwriter.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/text.h"

namespace profd::analysis {
namespace {

constexpr uint32_t kHeaderColor = 0x187498;  // analysis 3.2
constexpr size_t kMostName = 31;             // characters of a sheet's name
constexpr size_t kFittedRows = 1000;         // that a column's width is fitted to
constexpr size_t kNarrowest = 8;
constexpr size_t kWidest = 80;

struct SheetName {
  std::string_view check;
  Text name;
};
// Those of the vendor's advisor where it has one (analysis 3.2).
constexpr auto kSheetNames = std::to_array<SheetName>({
    {"overall_summary", Text("Overall Summary", "总体概览")},
    {"slow_rank", Text("slow rank", "慢卡")},
    {"slow_link", Text("slow link", "慢链路")},
    {"environment", Text("Environment Variable Issues", "环境变量")},
    {"kernel_compare", Text("Kernel compare", "计算算子对比")},
    {"api_compare", Text("Api compare", "API 对比")},
    {"ai_core_frequency", Text("AI Core Frequency Issues", "AI Core 降频")},
    {"aicpu", Text("AICPU Issues", "AICPU 算子")},
    {"operator_no_bound", Text("Operator No Bound Issues", "无瓶颈算子")},
    {"block_dim", Text("Block Dim Issues", "未用满核数的算子")},
    {"ai_core_performance", Text("AI Core Performance Analysis", "AI Core 性能分析")},
    {"packet", Text("Packet Analysis", "通信小包分析")},
    {"bandwidth_contention", Text("Bandwidth Contention Analysis", "带宽抢占分析")},
    {"retransmission", Text("Communication Retransmission Analysis", "通信重传分析")},
    {"byte_alignment", Text("Byte Alignment Analysis", "字节对齐分析")},
    {"affinity_api", Text("Affinity API Issues", "亲和 API")},
    {"operator_dispatch", Text("Operator Dispatch Issues", "算子下发")},
    {"gc", Text("GC Analysis", "垃圾回收分析")},
    {"conjectured_gc", Text("ConjecturedGcAnalysis", "疑似垃圾回收分析")},
    {"memory", Text("Memory Operator Issues", "内存算子")},
    {"dataloader", Text("Slow Dataloader Issues", "数据加载")},
    {"fusible_operators", Text("Fusible Operator Analysis", "可融合算子分析")},
});

bool IsBegin(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }  // of a character

// Only what XML can hold: other bytes and control characters are shown as '?', line ends are '\n'.
std::string Valid(std::string_view raw) {
  std::string text = Json::parse(Json(raw).dump(-1, ' ', false, Json::error_handler_t::replace))
                         .get<std::string>();
  std::erase(text, '\r');
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; },
      '?');
  for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (size_t at = text.find(none); at != std::string::npos; at = text.find(none))
      text.replace(at, none.size(), "?");
  }
  return text;
}

// Units of UTF-16, which the format counts.
size_t LengthOf(std::string_view text) {
  size_t length = 0;
  for (const char c : text)
    length += (IsBegin(c) ? 1 : 0) + (static_cast<unsigned char>(c) >= 0xF0 ? 1 : 0);
  return length;
}

// Its first characters, at most so many.
std::string Cut(std::string_view text, size_t most) {
  size_t length = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t more =
        (IsBegin(text[i]) ? 1 : 0) + (static_cast<unsigned char>(text[i]) >= 0xF0 ? 1 : 0);
    if (length + more > most) return std::string(text.substr(0, i));
    length += more;
  }
  return std::string(text);
}

// A number is left out where it would be cut: rank 31 is not rank 3.
std::string CutName(std::string_view text, size_t most) {
  std::string name = Cut(text, most);
  const auto digit_at = [text](size_t i) { return i < text.size() && IsDigit(text[i]); };
  if (!digit_at(name.size())) return name;
  while (!name.empty() && IsDigit(name.back())) name.pop_back();
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

// How wide it looks: Chinese characters take two.
size_t WidthOf(std::string_view text) {
  size_t width = 0;
  size_t widest = 0;
  for (const char c : text) {
    if (c == '\n') width = 0;
    if (IsBegin(c)) width += static_cast<unsigned char>(c) >= 0xE3 ? 2 : 1;
    widest = std::max(widest, width);
  }
  return widest;
}

std::string Header(std::string column) {
  std::ranges::replace(column, '_', ' ');
  return column;
}

std::string Joined(const Json& lines) {
  std::string text;
  for (const Json& line : lines) text += (text.empty() ? "" : "\n") + line.get<std::string>();
  return text;
}

// Closes what a failure leaves open.
struct FreeWorkbook {
  void operator()(lxw_workbook* workbook) const { lxw_workbook_free(workbook); }
};

class Book {
 public:
  Book(const std::string& path, Language language, const SheetLimits& limits)
      : language_(language), limits_(limits) {
    lxw_workbook_options options{};
    options.constant_memory = LXW_TRUE;
    book_.reset(workbook_new_opt(path.c_str(), &options));
    if (book_ == nullptr) return;
    header_ = workbook_add_format(book_.get());
    format_set_bold(header_);
    format_set_font_name(header_, "Arial");
    format_set_font_color(header_, LXW_COLOR_WHITE);
    format_set_bg_color(header_, kHeaderColor);
    plain_ = Format("0");
    count_ = Format("#,##0");
    decimal_ = Format("#,##0.000");
    ratio_ = Format("0.0000");
    percent_ = Format("0.00%");
    text_ = workbook_add_format(book_.get());
    format_set_align(text_, LXW_ALIGN_VERTICAL_TOP);
    wrapped_ = workbook_add_format(book_.get());
    format_set_align(wrapped_, LXW_ALIGN_VERTICAL_TOP);
    format_set_text_wrap(wrapped_);
  }
  bool ok() const { return book_ != nullptr; }

  // Rows of cells below a header; `last`: below them, where there are notices.
  void AddSheet(const std::string& name, const std::vector<std::string>& columns,
                const std::vector<Json>& rows, bool wrap) {
    lxw_worksheet* sheet = workbook_add_worksheet(book_.get(), UniqueName(name).c_str());
    if (sheet == nullptr || columns.empty()) return;
    const size_t most = limits_.rows - 1;
    // One of them has how many are missing.
    const size_t shown = rows.size() <= most ? rows.size() : most - 1;
    worksheet_freeze_panes(sheet, 1, 0);
    worksheet_autofilter(sheet, 0, 0, static_cast<lxw_row_t>(shown),
                         static_cast<lxw_col_t>(columns.size() - 1));
    for (size_t column = 0; column < columns.size(); ++column) {
      size_t width = WidthOf(columns[column]) + 3;  // the filter's button
      for (size_t row = 0; row < std::min(shown, kFittedRows); ++row) {
        if (column < rows[row].size())
          width = std::max(width, WidthOf(Shown(rows[row][column])) + 1);
      }
      const auto at = static_cast<lxw_col_t>(column);
      worksheet_set_column(sheet, at, at,
                           static_cast<double>(std::clamp(width, kNarrowest, kWidest)), nullptr);
      worksheet_write_string(sheet, 0, at, columns[column].c_str(), header_);
    }
    for (size_t row = 0; row < shown; ++row) {
      for (size_t column = 0; column < std::min(columns.size(), rows[row].size()); ++column) {
        Write(sheet, row + 1, column, rows[row][column], columns[column], wrap);
      }
    }
    if (shown == rows.size()) return;
    const std::string left_out =
        Translate({"{:more row is|more rows are} left out: a sheet has at most {} rows; advice.json has all",
             "省略了 {} 行：工作表最多 {} 行；advice.json 中有全部数据"},
            Counted{rows.size() - shown}, limits_.rows)
            .In(language_);
    worksheet_write_string(sheet, static_cast<lxw_row_t>(shown + 1), 0, left_out.c_str(), text_);
    notices_.push_back(name + ": " + left_out);
  }

  // A name of a sheet that is not taken yet.
  std::string UniqueName(std::string name) {
    constexpr std::string_view kForbidden = "[]:*?/\\";
    std::ranges::replace_if(
        name, [&](char c) { return kForbidden.find(c) != std::string_view::npos || c == '\''; },
        ' ');
    name = CutName(Valid(name), kMostName);
    std::string unique = name;
    for (int number = 2; !names_.insert(LowerCase(unique)).second; ++number) {
      const std::string end = fmt::format(" ({})", number);
      unique = CutName(name, kMostName - end.size()) + end;
    }
    return unique;
  }

  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

  Status Close() {
    const lxw_error error = workbook_close(book_.release());  // it frees it, whatever becomes of it
    return error == LXW_NO_ERROR ? Status::Ok() : Internal(lxw_strerror(error));
  }

 private:
  lxw_format* Format(const char* number) {
    lxw_format* format = workbook_add_format(book_.get());
    format_set_num_format(format, number);
    format_set_align(format, LXW_ALIGN_VERTICAL_TOP);
    return format;
  }

  static std::string Shown(const Json& cell) {
    if (cell.is_string()) return cell.get<std::string>();
    if (cell.is_number_float()) return fmt::format("{:.3f}", cell.get<double>());
    return cell.is_null() ? std::string() : cell.dump() + "  ";
  }

  lxw_format* FormatOf(const Json& cell, std::string_view column) const {
    constexpr std::array<std::string_view, 4> kNumbers = {"rank", "step", "first", "last"};
    constexpr std::array<std::string_view, 3> kParts = {"decrease", "improvement", "beside mean"};
    if (cell.is_number_integer())
      return std::ranges::find(kNumbers, column) != kNumbers.end() ? plain_ : count_;
    if (column == "ratio" || column.ends_with("share") ||
        std::ranges::find(kParts, column) != kParts.end())
      return percent_;
    return column.ends_with("ratio") ? ratio_ : decimal_;
  }

  void Write(lxw_worksheet* sheet, size_t row, size_t column, const Json& cell,
             std::string_view header, bool wrap) {
    const auto r = static_cast<lxw_row_t>(row);
    const auto c = static_cast<lxw_col_t>(column);
    if (cell.is_number()) {
      worksheet_write_number(sheet, r, c, cell.get<double>(), FormatOf(cell, header));
    } else if (cell.is_boolean()) {
      worksheet_write_boolean(sheet, r, c, cell.get<bool>() ? 1 : 0, text_);
    } else if (cell.is_string()) {
      // As a string, whatever it begins with.
      worksheet_write_string(sheet, r, c, Fitted(cell.get<std::string>(), header).c_str(),
                             wrap ? wrapped_ : text_);
    }
  }

  std::string Fitted(std::string_view raw, std::string_view header) {
    std::string text = Valid(raw);
    const size_t length = LengthOf(text);
    if (length <= limits_.text) return text;
    const std::string end =
        Translate({" ... (cut; {} characters)", " ……（已截断；共 {} 个字符）"}, length).In(language_);
    constexpr size_t kMostNotices = 100;
    if (notices_.size() < kMostNotices) {
      notices_.push_back(Translate({"{}: a text of {} characters is cut to {}; advice.json has all of it",
                              "{}：{} 个字符的文本被截断为 {} 个；advice.json 中有全文"},
                             header, length, limits_.text)
                             .In(language_));
    }
    return Cut(text, limits_.text - std::min(limits_.text, LengthOf(end))) + end;
  }

  Language language_;
  SheetLimits limits_;
  std::unique_ptr<lxw_workbook, FreeWorkbook> book_;
  lxw_format* header_ = nullptr;
  lxw_format* plain_ = nullptr;
  lxw_format* count_ = nullptr;
  lxw_format* decimal_ = nullptr;
  lxw_format* ratio_ = nullptr;
  lxw_format* percent_ = nullptr;
  lxw_format* text_ = nullptr;
  lxw_format* wrapped_ = nullptr;
  std::set<std::string> names_;
  std::vector<std::string> notices_;
};

std::vector<Json> Problems(const Json& findings) {
  std::vector<Json> rows;
  for (const Json& each : findings) {
    const size_t count = std::max<size_t>(each["table"]["rows"].size(), 1);
    std::string places;
    for (const Json& place : each["places"])
      places += fmt::format("{}{}:{}", places.empty() ? "" : "\n", place["file"].get<std::string>(),
                            place["line"].get<int64_t>());
    rows.push_back({each["dimension"],
                    each["title"].get<std::string>() + "\n" + each["evidence"].get<std::string>(),
                    Joined(each["advice"]), count, each["cost_ms"], each["priority"], each["check"],
                    each["rank"], Joined(each["code"]), places});
  }
  return rows;
}

// Costs of all findings are of the same.
Text CostColumn(const Json& findings) {
  const bool of_run = !findings.empty() && findings.front()["cost_of"] == "run";
  return of_run ? Text("cost (ms in all)", "代价（ms，全程）") : Text("cost (ms per step)", "代价（ms/step）");
}

std::vector<std::string> ProblemColumns(const Json& findings, Language language) {
  std::vector<std::string> columns;
  for (const Text& each :
       {Text("category", "维度"), Text("description", "描述"), Text("suggestion", "建议"),
        Text("problem count", "问题数"), CostColumn(findings),
        Text("priority", "优先级"), Text("check", "检查项"), Text("rank", "rank"),
        Text("code", "代码"), Text("place", "位置")}) {
    columns.emplace_back(each.In(language));
  }
  return columns;
}

std::string NameOf(const Json& finding, Language language) {
  const auto known =
      std::ranges::find(kSheetNames, finding["check"].get<std::string>(), &SheetName::check);
  return known == kSheetNames.end() ? finding["title"].get<std::string>()
                                    : std::string(known->name.In(language));
}

}  // namespace

Status WriteXlsx(const Json& findings, Language language, const std::string& path,
                 const SheetLimits& limits) {
  Book book(path, language, limits);
  if (!book.ok()) return Status(StatusCode::kResourceExhausted, "no memory for the workbook");
  const std::string first(Text("problems", "问题综述").In(language));
  book.AddSheet(first, ProblemColumns(findings, language), Problems(findings), true);
  for (const Json& each : findings) {
    if (each["table"]["rows"].empty()) continue;
    std::vector<std::string> columns;
    for (const Json& column : each["table"]["columns"])
      columns.push_back(Header(column.get<std::string>()));
    const Json& table = each["table"]["rows"];
    const std::vector<Json> rows(table.begin(), table.end());
    book.AddSheet(NameOf(each, language), columns, rows, false);
  }
  const std::vector<std::string> notices = book.TakeNotices();
  if (!notices.empty()) {
    std::vector<Json> rows;
    rows.reserve(notices.size());
    for (const std::string& notice : notices) rows.push_back(Json::array({notice}));
    const std::string name(Text("notices", "说明").In(language));
    book.AddSheet(name, {name}, rows, true);
  }
  return book.Close();
}

}  // namespace profd::analysis
