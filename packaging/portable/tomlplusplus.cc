// toml++ as a static library, which Debian has as a shared one only.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
