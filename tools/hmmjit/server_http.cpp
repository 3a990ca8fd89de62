#include "server_http.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#if HMMJIT_HAVE_BEAST
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/file_body.hpp>
#include <boost/beast/http/parser.hpp>
#endif

#include "core/ascii.hpp"
#include "core/text_fields.hpp"
#include "server_wire.hpp"

namespace hmmjit::tools {
namespace {

constexpr int kPatience = 30;                  // seconds without any byte
constexpr std::chrono::minutes kTransfer{10};  // for a whole request or answer
constexpr std::size_t kPiece = std::size_t{1} << 16;

std::unexpected<Error> socket_error(const std::string& place, const char* action,
                                    const char* remedy) {
  return fail(ErrorCode::kResources, fmt::format("cannot {}: {}", action, std::strerror(errno)),
              place, remedy);
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::kUsage, "no name for a socket: it is empty or too long", path,
                fmt::format("give at most {} bytes", sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Result<int> connect_to(const std::string& path) {
  HMMJIT_ASSIGN(const sockaddr_un address, address_of(path));
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0 &&
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return descriptor;
  const int reason = errno;
  const auto error = socket_error(path, "reach a server", "start hmmjit serve --socket there");
  if (descriptor >= 0) ::close(descriptor);
  errno = reason;
  return error;
}

Result<int> listen_at(const std::string& path) {
  HMMJIT_ASSIGN(const sockaddr_un address, address_of(path));
  if (const auto other = connect_to(path)) {
    ::close(*other);
    return fail(ErrorCode::kResources, "a server is there already", path,
                "stop it, or give another name");
  }
  // A server of another user, or of another kind, may be there and not take the connection.
  struct stat info {};
  if (errno == ECONNREFUSED && ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode))
    ::unlink(path.c_str());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const mode_t before = ::umask(0177);
  const bool bound =
      descriptor >= 0 &&
      ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::umask(before);
  if (!bound || ::listen(descriptor, SOMAXCONN) != 0)
    return socket_error(path, "listen", "give --socket another name");
  return descriptor;
}

Result<int> listen_at_port(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos)
    return fail(ErrorCode::kUsage, "no port", address, "write for example 127.0.0.1:8080");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  if (::getaddrinfo(host.empty() ? "127.0.0.1" : host.c_str(), address.substr(colon + 1).c_str(),
                    &wanted, &found) != 0)
    return fail(ErrorCode::kUsage, "no such address", address, "write for example 127.0.0.1:8080");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  const int descriptor = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (descriptor < 0 || ::bind(descriptor, found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(descriptor, SOMAXCONN) != 0)
    return socket_error(address, "listen", "give --listen another port");
  return descriptor;
}

bool HttpConnection::begin(int status, std::string_view type, std::optional<std::uint64_t> length) {
  return write(fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}Connection: close\r\n\r\n",
                           status, status < 300 ? "OK" : "Error", type,
                           length ? fmt::format("Content-Length: {}\r\n", *length) : ""));
}

bool HttpConnection::write(std::string_view bytes) {
  const auto begun = std::chrono::steady_clock::now();
  const bool sent = send_all(socket_, bytes);
  waited_ += std::chrono::steady_clock::now() - begun;
  return sent && waited_ < kTransfer;
}

void HttpConnection::answer(int status, std::string_view type, std::string_view text) {
  if (begin(status, type, text.size())) write(text);
}

bool HttpConnection::wait(int event, std::chrono::milliseconds time) const {
  pollfd both[] = {{event, POLLIN, 0}, {socket_, POLLRDHUP, 0}};
  return ::poll(both, 2, static_cast<int>(time.count())) <= 0 || both[1].revents == 0;
}

#if HMMJIT_HAVE_BEAST
namespace http = boost::beast::http;

namespace {

void set_timeouts(int socket) {
  const timeval patience{kPatience, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

}  // namespace

bool http_is_built_in() { return true; }

struct HttpConnection::Parser {
  http::request_parser<http::file_body> request;
  std::string received;  // but not yet parsed
};

HttpConnection::HttpConnection(int socket, std::uint64_t body)
    : socket_(socket), parser_(std::make_unique<Parser>()) {
  set_timeouts(socket);
  parser_->request.header_limit(kPiece);
  parser_->request.body_limit(body);
}

HttpConnection::~HttpConnection() {
  // Closing the socket while the client still sends would discard the answer.
  ::shutdown(socket_, SHUT_WR);
  const timeval patience{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string rest(kPiece, '\0');
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (::recv(socket_, rest.data(), rest.size(), 0) > 0 &&
         std::chrono::steady_clock::now() < end) {
  }
  ::close(socket_);
}

bool HttpConnection::receive(bool head) {
  auto& parser = parser_->request;
  std::string& bytes = parser_->received;
  std::string piece(kPiece, '\0');
  const auto end = std::chrono::steady_clock::now() +
                   (head ? std::chrono::seconds(kPatience) : std::chrono::seconds(kTransfer));
  while (!(head ? parser.is_header_done() : parser.is_done())) {
    boost::system::error_code error;
    bytes.erase(0, parser.put(boost::asio::buffer(bytes), error));
    if (error == http::error::need_more) error = {};
    if (error) {
      const bool large = error == http::error::body_limit || error == http::error::header_limit;
      const bool unsaved = error.category() == boost::system::system_category() ||
                           error.category() == boost::system::generic_category();
      answer(large     ? 413
             : unsaved ? 507
                       : 400,
             "text/plain",
             large ? "the request is too large; see --max-request\n"
                   : fmt::format("{}: {}\n", unsaved ? "cannot save the request" : "no request",
                                 error.message()));
      return false;
    }
    if (head ? parser.is_header_done() : parser.is_done()) break;
    // The rest is the beginning of a line between chunks, which the parser does not bound.
    if (bytes.size() > kPiece) {
      answer(413, "text/plain", "the request is too large; see --max-request\n");
      return false;
    }
    const ssize_t got = ::recv(socket_, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || std::chrono::steady_clock::now() > end) return false;
    bytes.append(piece, 0, static_cast<std::size_t>(got));
  }
  return true;
}

std::optional<HttpRequest> HttpConnection::read_head() {
  if (!receive(true)) return std::nullopt;
  const auto& message = parser_->request.get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  std::string_view rest = target;
  request.path = take_up_to(&rest, '?');
  while (!rest.empty()) {
    std::string_view value = take_up_to(&rest, '&');
    const std::string_view name = take_up_to(&value, '=');
    request.parameters.emplace_back(percent_decoded(name), percent_decoded(value));
  }
  const std::string authorization(message[http::field::authorization]);
  std::string_view token = authorization;
  if (equal_ignoring_case(take_word(&token), "Bearer")) request.token = trim(token);
  if (message[http::field::expect] == "100-continue" && !parser_->request.is_done())
    write("HTTP/1.1 100 Continue\r\n\r\n");
  return request;
}

bool HttpConnection::read_body(const std::string& path) {
  boost::system::error_code error;
  auto& parser = parser_->request;
  parser.get().body().open(path.c_str(), boost::beast::file_mode::write_new, error);
  if (error) {
    answer(507, "text/plain", fmt::format("{}: {}\n", path, error.message()));
    return false;
  }
  parser.eager(true);
  if (!receive(false)) return false;
  parser.get().body().close();
  return true;
}

#else
bool http_is_built_in() { return false; }
struct HttpConnection::Parser {};
HttpConnection::HttpConnection(int socket, std::uint64_t) : socket_(socket) {}
HttpConnection::~HttpConnection() { ::close(socket_); }
bool HttpConnection::receive(bool) { return false; }
std::optional<HttpRequest> HttpConnection::read_head() { return std::nullopt; }
bool HttpConnection::read_body(const std::string&) { return false; }
#endif

}  // namespace hmmjit::tools
