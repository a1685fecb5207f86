// Runs one fuzzer: its seeds, and inputs that are made of them by chance. Input N of a seed is the same in
// every run and on every machine.
//
//   farside_fuzz_frames --runs 20000
//   farside_fuzz_frames --seconds 600 --seed 7
//   farside_fuzz_frames --seed 7 --only 123456     that input again
//   farside_fuzz_frames --write FOLDER             the seeds as files, for libFuzzer
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/random.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

struct Wanted {
  uint64_t runs = 20'000;
  uint64_t seconds = 0;
  uint64_t seed = 1;
  std::optional<uint64_t> only;
  std::string folder;
};

// The message by which a crash names its input. A signal handler reaches only globals.
struct Message {
  char text[128];
  int size = 0;
};
Message crash_message;

// AddressSanitizer ends with SIGABRT too, if it is told to (./dev fuzz).
void OnCrash(int signal) {
  static_cast<void>(::write(STDERR_FILENO, crash_message.text, static_cast<size_t>(crash_message.size)));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void TryNumber(const Wanted& wanted, const std::vector<Bytes>& seeds, uint64_t number) {
  crash_message.size = std::snprintf(
      crash_message.text, sizeof crash_message.text, "\nfuzz: to see it again: --seed %llu --only %llu\n",
      static_cast<unsigned long long>(wanted.seed), static_cast<unsigned long long>(number));
  Random random = Random(wanted.seed).Fork(number);
  // The seeds themselves come first.
  const Bytes input = number < seeds.size() ? seeds[number] : MakeInput(seeds, random);
  Try(Input(input));
}

void WriteSeeds(const std::string& folder, const std::vector<Bytes>& seeds) {
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream file(fmt::format("{}/seed-{}", folder, i), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seeds[i].data()), static_cast<std::streamsize>(seeds[i].size()));
  }
}

void Run(const Wanted& wanted) {
  const std::vector<Bytes> seeds = Seeds();
  if (!wanted.folder.empty()) return WriteSeeds(wanted.folder, seeds);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, OnCrash);
  if (wanted.only.has_value()) return TryNumber(wanted, seeds, *wanted.only);
  const auto begin = std::chrono::steady_clock::now();
  const auto goes_on = [&](uint64_t number) {
    if (wanted.seconds == 0) return number < wanted.runs;
    return std::chrono::steady_clock::now() - begin < std::chrono::seconds(wanted.seconds);
  };
  uint64_t number = 0;
  for (; goes_on(number); ++number) TryNumber(wanted, seeds, number);
  fmt::print("{} inputs of seed {}: nothing found\n", number, wanted.seed);
}

}  // namespace
}  // namespace farside::fuzz

int main(int argc, char** argv) {
  farside::fuzz::Wanted wanted;
  CLI::App app("Tries inputs made by chance.");
  app.add_option("--runs", wanted.runs, "so many inputs");
  app.add_option("--seconds", wanted.seconds, "for so long, instead of --runs");
  app.add_option("--seed", wanted.seed, "of all that is chosen by chance");
  app.add_option("--only", wanted.only, "the input with this number, and no other");
  app.add_option("--write", wanted.folder, "writes the seeds as files into this folder");
  CLI11_PARSE(app, argc, argv);
  farside::fuzz::Run(wanted);
  return 0;
}
