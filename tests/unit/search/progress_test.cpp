// The progress display of a running search.
#include "hmmjit/progress.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <regex>
#include <string>

namespace hmmjit::tools {
namespace {

using namespace std::chrono_literals;

// Runs `work` with `descriptor` as standard error.
template <typename Work>
void with_standard_error(int descriptor, Work work) {
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(descriptor, STDERR_FILENO);
  work();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
}

void half_filtered(SearchProgress& p) {
  p.targets_complete = true;
  p.targets = 1000;
  p.cells = 50'000'000;
  p.cells_queued = 100'000'000;
  p.filter_microseconds = 1'000'000;
}

TEST(ShareDone, UnknownUntilBothInputsAreMeasured) {
  SearchProgress p;
  EXPECT_FALSE(share_done(p, 0, 0));
  half_filtered(p);
  EXPECT_FALSE(share_done(p, 0, 0));  // models from a pipe
  p.targets_complete = false;
  EXPECT_FALSE(share_done(p, 10, 10));  // targets from a pipe
  p.targets_complete = true;
  EXPECT_DOUBLE_EQ(*share_done(p, 10, 10), 0.5);
  EXPECT_DOUBLE_EQ(*share_done(p, 5, 10), 0.25);  // as many models remain
  p.targets_complete = false;
  p.target_bytes_read = 10;
  p.target_bytes_total = 50;
  EXPECT_DOUBLE_EQ(*share_done(p, 10, 10), 0.1);
}

TEST(ShareDone, CountsScoringByItsTime) {
  SearchProgress p;
  half_filtered(p);
  // Half of the targets are filtered, and a third of their survivors is scored. Filtering took 1 s
  // and scoring 1 s: 2 of 2 + 2 x 3 seconds are done.
  p.scoring_cells_found = 3'000'000;
  p.scoring_cells = 1'000'000;
  p.scoring_microseconds = 1'000'000;
  EXPECT_NEAR(*share_done(p, 10, 10), 0.25, 1e-9);
  // All targets are filtered, but most of the time remains.
  p.cells = 100'000'000;
  p.filter_microseconds = 2'000'000;
  p.scoring_cells_found = 6'000'000;
  EXPECT_NEAR(*share_done(p, 10, 10), 3.0 / 8.0, 1e-9);
  p.scoring_cells = 6'000'000;
  p.scoring_microseconds = 6'000'000;
  EXPECT_DOUBLE_EQ(*share_done(p, 10, 10), 1);
}

TEST(ProgressLine, KeepsToTheWidth) {
  SearchProgress p;
  half_filtered(p);
  const std::string whole = progress_line(p, 0.25, 30, 0);
  EXPECT_EQ(whole,
            "hmmjit: 25 %, 1:30 left, 0 models done, 1000 targets, 0.1 Gcells, 0.0 Gcells/s");
  EXPECT_EQ(progress_line(p, 0.25, 30, whole.size()), whole);
  // A number with a part of its unit would mean something else.
  EXPECT_EQ(progress_line(p, 0.25, 30, whole.size() - 1), whole.substr(0, whole.rfind(',')));
  EXPECT_EQ(progress_line(p, 0.25, 30, 13), "hmmjit: 25 %");
  EXPECT_EQ(progress_line(p, 0.25, 30, 5), "hmmji");
  EXPECT_EQ(progress_line(p, std::nullopt, 30, 0).find('%'), std::string::npos);
  // The rate is that of all searches of a jackhmmer.
  p.earlier_cells = 6'000'000'000;
  EXPECT_TRUE(progress_line(p, 0.25, 30, 0).ends_with(", 6.0 Gcells, 0.2 Gcells/s"));
}

TEST(ProgressFits, NeitherInTheReportNorInALogOfHmmersName) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const int standard_output = ::dup(STDOUT_FILENO);
  ::fflush(stdout);
  with_standard_error(pipe[1], [&] {
    ::dup2(pipe[0], STDOUT_FILENO);  // another end has another number, but the same inode
    EXPECT_FALSE(progress_fits(false, false));
    EXPECT_TRUE(progress_fits(true, false));
    EXPECT_FALSE(progress_fits(true, true));
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    EXPECT_TRUE(progress_fits(false, false));
  });
  ::dup2(standard_output, STDOUT_FILENO);
}

TEST(ProgressDisplay, PeriodicLinesElsewhere) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  SearchProgress p;
  half_filtered(p);
  const std::atomic<std::uint64_t> bytes{10}, total{10};
  std::string text(10000, '\0');
  with_standard_error(pipe[1], [&] {
    const ProgressDisplay display(p, bytes, total, 5ms);
    text.resize(static_cast<std::size_t>(::read(pipe[0], text.data(), text.size())));
  });
  const std::regex form(
      "(hmmjit: 50 %, 0:00 left, 0 models done, 1000 targets, 0\\.1 Gcells, [0-9.]+ Gcells/s\n)+");
  EXPECT_TRUE(std::regex_match(text, form)) << text;
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(ProgressDisplay, OneLineWithinATerminalsWidth) {
  for (const int columns : {30, 60, 200}) {
    int ours = -1, theirs = -1;
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    if (::openpty(&ours, &theirs, nullptr, nullptr, &size) != 0)
      GTEST_SKIP() << "no terminals here";
    SearchProgress p;
    half_filtered(p);
    p.targets = 123456789;
    const std::atomic<std::uint64_t> bytes{10}, total{10};
    std::string text;
    with_standard_error(theirs, [&] {
      std::string piece(10000, '\0');
      {
        const ProgressDisplay display(p, bytes, total, 5ms);
        while (text.size() < 1000) {
          const auto got = ::read(ours, piece.data(), piece.size());
          ASSERT_GT(got, 0);
          text.append(piece, 0, static_cast<std::size_t>(got));
          p.targets = 1;  // a shorter line must cover the longer one
        }
      }
    });
    // Lines that erase the one before; the last may be incomplete.
    const std::regex form("(\r\x1b\\[Khmmjit: 50 %,[^\r\n]{0," + std::to_string(columns - 1 - 13) +
                          "}){4,}\r?(\x1b\\[?.*)?");
    EXPECT_TRUE(std::regex_match(text, form)) << text;
    ::close(ours);
    ::close(theirs);
  }
}

}  // namespace
}  // namespace hmmjit::tools
