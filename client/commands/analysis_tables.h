// Tables of `profctl analyze`, from the JSON of an analysis.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/context.h"
#include "client/json.h"

namespace profd::client {

// Of an object's fields; "-" where there is none.
std::string Number(const Json& object, const char* name, int decimals = 3);
std::string Share(const Json& object, const char* name);
std::string Text(const Json& object, const char* name);

// A column: its heading and what it shows of a row.
struct Column {
  std::string heading;
  std::function<std::string(const Json&)> cell;
};

Column Ms(std::string heading, const char* name);
Column Plain(std::string heading, const char* name);

// The first rows of a list, under a title; nothing of an empty one. `means` of them, the first ones, sum up the others.
void PrintList(const Io& io, const std::string& title, const Json& list, const std::vector<Column>& columns, size_t means = 0);

// Of a run's `cluster`.
void PrintCluster(const Io& io, const Json& cluster);

}  // namespace profd::client
