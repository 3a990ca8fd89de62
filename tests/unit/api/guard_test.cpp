// Only hmmjit::Error leaves the library when an allocation fails.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <optional>

#include "tests/unit/api/support.hpp"

namespace {
// Number of allocations of this thread before all further ones fail.
thread_local long allowed = std::numeric_limits<long>::max();

void* allocate(std::size_t bytes) {
  if (allowed <= 0) throw std::bad_alloc();
  --allowed;
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* allocate_or_null(std::size_t bytes) noexcept {
  try {
    return allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Inlined, it would be a std::free() of what GCC takes for the result of the standard's new.
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }
}  // namespace

// The library under test is linked statically and uses this operator, too.
void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace {

// Lets the first, second, ... allocation of `call` fail until it succeeds. Any exception other than
// an out-of-memory Error fails the test.
void starve(const char* what, const std::function<void()>& call) {
  SCOPED_TRACE(what);
  for (long n = 0; n < 100'000; n += n < 200 ? 1 : 97) {
    std::optional<hmmjit::ErrorCode> code;
    bool foreign = false;
    allowed = n;
    try {
      call();
    } catch (const hmmjit::Error& error) {
      code = error.code();
    } catch (...) {
      foreign = true;
    }
    allowed = std::numeric_limits<long>::max();
    ASSERT_FALSE(foreign) << "allocation " << n;
    if (!code) return;
    ASSERT_EQ(*code, hmmjit::ErrorCode::kResources) << "allocation " << n;
  }
  FAIL() << "it never succeeded";
}

TEST(Guard, OnlyErrorsLeaveTheLibrary) {
  const auto inputs = hmmjit::tests::make_inputs(31, 2, 60);
  const hmmjit::test_support::TemporaryFolder folder;
  const std::string path = folder.path().string() + "/a file with a name that is not short.txt";
  const auto [models, targets] = hmmjit::tests::parsed(inputs);
  hmmjit::SearchOptions options = hmmjit::tests::on_cpu(1);
  options.Z = 2;
  const auto found = hmmjit::search(models, targets, options);

  // Construct arguments outside: their allocations are the host's.
  starve("Models::from_file", [] { hmmjit::Models::from_file("x.hmm"); });
  starve("Targets::from_file", [] { hmmjit::Targets::from_file("x.fa", "fasta"); });
  starve("Models::from_memory", [&] { hmmjit::Models::from_memory(inputs.models); });
  starve("Models::add", [&] {
    hmmjit::Models own;
    own.add(models[0]);
  });
  starve("Targets::add", [&] {
    hmmjit::Targets own;
    own.add({.name = "some_name", .residues = "ACDEFGHIKLMNPQRSTVWY"});
  });
  starve("find_device", [] { hmmjit::find_device("H200"); });
  starve("device_table", [] { hmmjit::device_table(); });
  starve("Cancellation", [] { hmmjit::Cancellation{}; });
  const std::string line = "# a line that is longer than what a string keeps in itself\n";
  for (int kind = 0; kind <= static_cast<int>(hmmjit::ReportKind::kHtmlPage); ++kind) {
    starve(("report " + std::to_string(kind)).c_str(), [&] {
      hmmjit::report_text(static_cast<hmmjit::ReportKind>(kind), found,
                          hmmjit::ReportOptions(options));
    });
    starve(("report file " + std::to_string(kind)).c_str(), [&] {
      auto report = hmmjit::Report::to_file(static_cast<hmmjit::ReportKind>(kind), path);
      report.add_text(line);
      for (const auto& model : found.models) report.add(model);
      report.complete();
    });
  }
  starve("main_report_header", [] { hmmjit::main_report_header(hmmjit::RunInfo()); });
  starve("search", [&] { hmmjit::search(models, targets, options); });
  hmmjit::Targets dna(hmmjit::Alphabet::kDna);
  dna.add({.name = "family", .residues = "GATTACAGGCCTTAACGGTCATTGCAGTCCGATAGGCTTACGATCGGATTACC"});
  const auto families = hmmjit::build_models(dna);
  hmmjit::SearchOptions one_thread(hmmjit::Program::kNhmmer);
  one_thread.threads = 1;
  hmmjit::NhmmerOptions nhmmer;
  nhmmer.search = &one_thread;
  starve("nhmmer", [&] { hmmjit::nhmmer(families, dna, nhmmer); });
}

}  // namespace
