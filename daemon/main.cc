#include "daemon/command_line.h"

int main(int argc, char** argv) { return profd::RunDaemon(argc, argv); }
