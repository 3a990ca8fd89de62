#include "core/diagnostics.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

namespace hmmjit {
namespace {

// Replaces standard error by another descriptor during its lifetime; -1: none.
class StandardError {
 public:
  explicit StandardError(int replacement) : saved_(::dup(STDERR_FILENO)) {
    if (replacement >= 0)
      ::dup2(replacement, STDERR_FILENO);
    else
      ::close(STDERR_FILENO);
  }
  ~StandardError() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST(Diagnostics, WritesWholeTexts) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  {
    const StandardError replaced(pipe[1]);
    diagnose("{} of {}\n", 1, "two");
    print_diagnostic("{} as it is\n");
  }
  ::close(pipe[1]);
  std::string text(100, '\0');
  text.resize(static_cast<std::size_t>(::read(pipe[0], text.data(), text.size())));
  EXPECT_EQ(text, "1 of two\n{} as it is\n");
  ::close(pipe[0]);
}

TEST(Diagnostics, LostOnesAreNoError) {
  ::signal(SIGPIPE, SIG_IGN);
  {
    const StandardError closed(-1);
    EXPECT_NO_THROW(diagnose("{}\n", "closed"));
  }
  const int full = ::open("/dev/full", O_WRONLY);
  {
    const StandardError replaced(full);
    EXPECT_NO_THROW(diagnose("{}\n", "full"));
  }
  ::close(full);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ::close(pipe[0]);
  {
    const StandardError replaced(pipe[1]);
    EXPECT_NO_THROW(diagnose("{}\n", "nobody reads"));
  }
  ::close(pipe[1]);
}

}  // namespace
}  // namespace hmmjit
