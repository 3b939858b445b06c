// What becomes of a statement where the server ends the connection: when it stops, or a proxy in front of it does.
#include "client/clickhouse/clickhouse_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace profd::client {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Reads one request of each connection, gives the next answer and ends the connection; "": without an answer.
class EndingServer {
 public:
  explicit EndingServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~EndingServer() {
    io_.stop();
    thread_.join();
  }
  EndingServer(const EndingServer&) = delete;
  EndingServer& operator=(const EndingServer&) = delete;

  ClickHouseUrl Url() const { return *ParseClickHouseUrl(fmt::format("clickhouse://127.0.0.1:{}/db", acceptor_.local_endpoint().port())); }
  // Bodies, by connection.
  std::vector<std::string> requests() {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](const error_code& failed, tcp::socket socket) {
      if (failed) return;
      boost::beast::flat_buffer buffer;
      http::request<http::string_body> request;
      error_code error;
      http::read(socket, buffer, request, error);
      std::string answer;
      {
        const MutexLock lock(mutex_);
        if (requests_.size() < answers_.size()) answer = answers_[requests_.size()];
        requests_.push_back(request.body());
      }
      asio::write(socket, asio::buffer(answer), error);
      socket.close(error);
      Accept();
    });
  }

  const std::vector<std::string> answers_;
  Mutex mutex_;
  std::vector<std::string> requests_ GUARDED_BY(mutex_);
  asio::io_context io_;
  tcp::acceptor acceptor_{io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::thread thread_;
};

using Texts = std::vector<std::string>;

// As a server that would keep the connection says it.
std::string Answer(std::string_view text) { return fmt::format("HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: {}\r\n\r\n{}", text.size(), text); }

TEST(ClickHouseConnection, NoneIsKept) {
  EndingServer server({Answer("a"), Answer("b")});
  ClickHouseServer asked(server.Url(), {}, {});
  EXPECT_EQ(*asked.Send("SELECT 1", ""), "a");
  EXPECT_EQ(*asked.Send("SELECT 2", ""), "b");
  EXPECT_EQ(server.requests(), (Texts{"SELECT 1", "SELECT 2"}));
}

TEST(ClickHouseConnection, AQueryWithoutAnAnswerIsAskedOnceMore) {
  EndingServer server({"", Answer("a"), "", ""});
  ClickHouseServer asked(server.Url(), {}, {});
  EXPECT_EQ(*asked.Send("SELECT 1", ""), "a");
  EXPECT_EQ(server.requests(), (Texts{"SELECT 1", "SELECT 1"}));
  const auto failed = asked.Send("SELECT 2", "");
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(failed.status().message().find("ended the connection without an answer"), std::string::npos) << failed.status().message();
  EXPECT_EQ(server.requests().size(), 4u);
}

// The server may have taken them.
TEST(ClickHouseConnection, RowsAndChangesAreSentOnce) {
  EndingServer server({});
  ClickHouseServer asked(server.Url(), {}, {});
  EXPECT_EQ(asked.Send("INSERT INTO db.facts FORMAT TabSeparated", "1\n").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(asked.Send("ALTER TABLE db.facts DROP PARTITION 'x'", "").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(asked.SendToCluster("ALTER TABLE db.facts DROP PARTITION 'x'", 0).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(ClickHouseConnection, APartOfAnAnswerIsAnError) {
  EndingServer server({Answer("abc").substr(0, Answer("abc").size() - 1)});
  ClickHouseServer asked(server.Url(), {}, {});
  const auto failed = asked.Send("SELECT 1", "");
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(failed.status().message().find("the connection broke"), std::string::npos) << failed.status().message();
  EXPECT_EQ(server.requests().size(), 1u);
}

}  // namespace
}  // namespace profd::client
