// HTTP/1.1 with one request and one answer per connection.
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

/// False if the program was built without the library that reads requests.
bool http_is_built_in();

struct HttpRequest {
  std::string method, path;                                     ///< "POST", "/v1/search"
  std::vector<std::pair<std::string, std::string>> parameters;  ///< after '?', decoded
  std::string token;                                            ///< of "Authorization: Bearer"
};

/// An accepted connection. One thread at a time.
class HttpConnection {
 public:
  /// Takes ownership of `socket`. `body`: largest accepted body, in bytes.
  HttpConnection(int socket, std::uint64_t body);
  ~HttpConnection();

  /// The request without its body; nullopt if the connection ended or was answered with an error.
  std::optional<HttpRequest> read_head();
  /// Writes the body to a new file; false as above.
  bool read_body(const std::string& path);

  void answer(int status, std::string_view type, std::string_view text);
  /// Begins an answer, to be continued by write(); without `length`, the end of the connection ends
  /// it. False if the client is gone, has received nothing for half a minute, or has blocked writes
  /// for ten minutes.
  bool begin(int status, std::string_view type, std::optional<std::uint64_t> length = {});
  bool write(std::string_view bytes);
  /// Waits for the eventfd `event`, at most for `time`; false if the client is gone.
  bool wait(int event, std::chrono::milliseconds time) const;

 private:
  struct Parser;
  // Receives the head, or the whole message.
  bool receive(bool head);

  int socket_;
  std::chrono::steady_clock::duration waited_{};  // for the client to receive an answer
  std::unique_ptr<Parser> parser_;
};

/// Listens at the Unix socket `path`, which only this user may open. Replaces an abandoned socket;
/// fails with kResources if another server listens.
Result<int> listen_at(const std::string& path);
/// Listens at "host:port". Fails with kUsage or kResources.
Result<int> listen_at_port(const std::string& address);
/// Connects to a server at `path`. Fails with kResources; errno has the reason.
Result<int> connect_to(const std::string& path);
/// False if the peer is gone, or has received nothing for half a minute.
bool send_all(int socket, std::string_view bytes);

}  // namespace hmmjit::tools
