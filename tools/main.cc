// The binary `farside`.
#include "tools/farside.h"

int main(int argc, char** argv) { return farside::tools::Farside(argc, argv); }
