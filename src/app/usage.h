// The books of a server.
#pragma once

#include <string>

namespace sluice {

/// $SLUICE_DB; empty if it is not set.
std::string default_database();

int usage_command(int argc, char** argv);

}  // namespace sluice
