// The manual pages and the completion of profd, from the tables of its flags and keys.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace profd {

// profd(8) and profd.toml(5) in the man(7) language.
std::string ManualOfDaemon(const CLI::App& app);
std::string ManualOfConfig(const std::string& version);

// For bash: flags, and files behind those that take a value.
std::string CompletionOfDaemon(const CLI::App& app);

}  // namespace profd
