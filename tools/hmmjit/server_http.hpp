// HTTP/1.1 as the server speaks it: a request and an answer for each connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace hmmjit::tools {

/// False: the library that reads requests was absent when the program was built.
bool http_is_built_in();

struct HttpRequest {
  std::string method, path;                                     ///< "POST", "/v1/search"
  std::vector<std::pair<std::string, std::string>> parameters;  ///< those after '?', decoded
  std::string token;                                            ///< of "Authorization: Bearer"
};

/// An accepted connection. One thread.
class HttpConnection {
 public:
  /// Owns `socket`. `body`: the largest body that is read.
  HttpConnection(int socket, std::uint64_t body);
  ~HttpConnection();

  /// The request without its body; nothing where the connection ended or was answered with an
  /// error.
  std::optional<HttpRequest> read_head();
  /// Writes the body to a new file; false as above.
  bool read_body(const std::string& path);

  void answer(int status, std::string_view type, std::string_view text);
  /// Begins an answer, of which parts follow; without `length`, its end is that of the connection.
  /// False: the client is gone, has taken nothing for half a minute, or has let writes wait for ten
  /// minutes.
  bool begin(int status, std::string_view type, std::optional<std::uint64_t> length = {});
  bool write(std::string_view bytes);
  /// Waits for `event`, which is an eventfd, for `time` at most; false: the client is gone.
  bool wait(int event, std::chrono::milliseconds time) const;

 private:
  struct Parser;
  // Receives until the head, or the whole message, is there.
  bool receive(bool head);

  int socket_;
  std::chrono::steady_clock::duration waited_{};  // for the client to take an answer
  std::unique_ptr<Parser> parser_;
};

/// Listens at the Unix socket `path`, which only this user may open. A socket at which nobody
/// listens is replaced; fails with kResources if there is another.
Result<int> listen_at(const std::string& path);
/// Listens at "host:port". Fails with kUsage or kResources.
Result<int> listen_at_port(const std::string& address);
/// Connects to a server at `path`; fails with kResources and leaves the reason in errno.
Result<int> connect_to(const std::string& path);
/// False: the peer is gone, or has taken nothing for half a minute.
bool send_all(int socket, std::string_view bytes);

}  // namespace hmmjit::tools
