// Build tool: prints what is kept in the repository from the option table.
#include <cstdio>
#include <string_view>

#include "proto/options/options.h"

int main(int argc, char** argv) {
  std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "--proto") {
    std::fputs(profd::options::OptionsProto().c_str(), stdout);
    return 0;
  }
  if (what == "--doc") {
    std::fputs(profd::options::OptionsDocument().c_str(), stdout);
    return 0;
  }
  std::fputs("usage: print_options --proto | --doc\n", stderr);
  return 2;
}
