// One connection to an HTTP server, over TCP or TLS, for a thread that waits for each step on it until a deadline. Header only:
// a library that includes it links OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"

namespace profd {

// TLS 1.2 or later. The other side's certificate is checked against `files.ca`, or the system's authorities where that is empty;
// `files.certificate` is shown where it comes with a key. `fault(name, path, error)` describes a file that cannot be used.
template <class Files, class Fault>
Status PrepareTlsClient(const Files& files, Fault fault, boost::asio::ssl::context* context) {
  using Context = boost::asio::ssl::context;
  boost::system::error_code error;
  context->set_options(Context::no_tlsv1 | Context::no_tlsv1_1, error);
  if (!error) context->set_verify_mode(boost::asio::ssl::verify_peer, error);
  if (error) return Internal(error.message());
  files.ca.empty() ? context->set_default_verify_paths(error) : context->load_verify_file(files.ca, error);
  if (error) return fault("ca", files.ca, error);
  if (files.certificate.empty() || files.key.empty()) return Status::Ok();
  context->use_certificate_chain_file(files.certificate, error);
  if (error) return fault("certificate", files.certificate, error);
  context->use_private_key_file(files.key, Context::pem, error);
  return error ? fault("key", files.key, error) : Status::Ok();
}

// Its constructor throws boost::system::system_error where there are no descriptors.
class HttpConnection {
 public:
  using Error = boost::system::error_code;

  // `go_on`, if there is one, is asked several times a second whether to go on.
  HttpConnection(std::string host, uint16_t port, std::function<bool()> go_on = nullptr)
      : host_(std::move(host)), port_(port), go_on_(std::move(go_on)) {}

  void SetDeadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  // Ends the step under way, from a handler that runs on io().
  void Stop() { stopped_ = true; }
  boost::asio::io_context& io() { return io_; }
  bool stopped() const { return stopped_; }
  bool timed_out() const { return timed_out_; }
  bool over() const { return stopped_ || timed_out_; }

  Error Resolve() {
    tcp::resolver resolver(io_);
    return Wait([&](auto done) {
      resolver.async_resolve(host_, std::to_string(port_), [this, done](const Error& e, tcp::resolver::results_type results) {
        found_ = std::move(results);
        done(e);
      });
    });
  }

  Error Connect() {
    return Wait([&](auto done) {
      boost::asio::async_connect(socket_, found_, [done](const Error& e, const tcp::endpoint&) { done(e); });
    });
  }

  // False: the host has no name for TLS.
  bool UseTls(boost::asio::ssl::context& context) {
    tls_.emplace(socket_, context);
    tls_->set_verify_callback(boost::asio::ssl::host_name_verification(host_));
    Error no_address;
    boost::asio::ip::make_address(host_, no_address);
    return !no_address || SSL_set_tlsext_host_name(tls_->native_handle(), host_.c_str()) == 1;
  }

  Error Handshake() {
    return Wait([&](auto done) { tls_->async_handshake(TlsStream::client, done); });
  }
  // Why a handshake has failed, if it is the certificate of the other side; otherwise null.
  const char* CertificateFault() {
    const long verified = SSL_get_verify_result(tls_->native_handle());
    return over() || verified == X509_V_OK ? nullptr : X509_verify_cert_error_string(verified);
  }

  // `step(stream, done)` begins an operation.
  template <class Step>
  Error Do(Step step) {
    return tls_ ? Wait([&](auto done) { step(*tls_, done); }) : Wait([&](auto done) { step(socket_, done); });
  }

 private:
  using tcp = boost::asio::ip::tcp;
  using TlsStream = boost::asio::ssl::stream<tcp::socket&>;
  static constexpr auto kSlice = std::chrono::milliseconds(100);

  // Starts an operation and runs until it has ended; on an early end its socket is closed, and it still ends, with an error,
  // before this returns.
  template <class Start>
  Error Wait(Start start) {
    using std::chrono::steady_clock;
    std::optional<Error> result;
    start([&result](const Error& error, size_t = 0) { result = error; });
    while (!result && !over()) {
      if (io_.stopped()) io_.restart();
      io_.run_one_until(go_on_ ? std::min(deadline_, steady_clock::now() + kSlice) : deadline_);
      if (result) break;
      stopped_ = stopped_ || (go_on_ && !go_on_());
      timed_out_ = steady_clock::now() >= deadline_;
    }
    if (!result) {
      Error ignored;
      socket_.close(ignored);
      while (!result && io_.run_one() > 0) {
      }
    }
    return result.value_or(boost::asio::error::operation_aborted);
  }

  const std::string host_;
  const uint16_t port_;
  const std::function<bool()> go_on_;
  std::chrono::steady_clock::time_point deadline_;
  bool stopped_ = false;
  bool timed_out_ = false;
  boost::asio::io_context io_;
  tcp::resolver::results_type found_;
  tcp::socket socket_{io_};
  std::optional<TlsStream> tls_;
};

}  // namespace profd
