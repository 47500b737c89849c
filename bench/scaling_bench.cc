// How it scales: pairs of acquire and release by 1 to 64 clients on every store, and what a renewal
// and an acquire cost among 1,000 to 1,000,000 leases. Numbers on stdout, a picture in a file.
//
//   scaling_bench PICTURE.svg [LARGEST]
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/client.h"
#include "tests/support/process.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

constexpr std::array kClients = {1, 2, 4, 8, 16, 32, 64};
constexpr Millis kPointLength{1500};

struct Point {
  double x = 0;
  double y = 0;
};
struct Curve {
  std::string name;
  std::vector<Point> points;
};

// ---- measured

// One store in this process: its threads share syncs. Else a connection for each.
enum class Sharing { OneStore, OneEach };

double pairs_a_second(const std::string& url, int clients, Sharing sharing) {
  std::vector<std::unique_ptr<Client>> stores;
  for (int i = 0; i < (sharing == Sharing::OneStore ? 1 : clients); ++i) {
    stores.push_back(std::make_unique<Client>(url));
  }
  const os::SystemClock clock;
  std::vector<double> done(static_cast<std::size_t>(clients));
  const auto work = [&](std::size_t i, MonoTime until) {
    Client& client = *stores[i % stores.size()];
    const std::string name = cat("pair/", i);
    while (clock.mono() < until) {
      client.release(client.take(name));
      ++done[i];
    }
  };
  work(0, clock.mono() + kPointLength / 5);
  done[0] = 0;
  const double took = seconds_of([&] {
    const MonoTime until = clock.mono() + kPointLength;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < done.size(); ++i) threads.emplace_back(work, i, until);
    for (std::thread& thread : threads) thread.join();
  });
  double all = 0;
  for (const double one : done) all += one;
  return all / took;
}

Curve by_clients(const std::string& name, const std::string& url, Sharing sharing) {
  Curve out{name, {}};
  for (const int clients : kClients) {
    const double rate = pairs_a_second(url, clients, sharing);
    out.points.push_back({static_cast<double>(clients), rate});
    std::printf("| %s | %d clients | %.0f pairs/s |\n", name.c_str(), clients, rate);
    std::fflush(stdout);
  }
  return out;
}

template <class Server>
Curve by_clients_of(const std::string& name) {
  Server server;
  CHECK(server.start().has_value(), name.c_str());
  return by_clients(name, server.url(), Sharing::OneEach);
}

void fill(Client& client, int from, int to) {
  constexpr int kThreads = 64;
  std::vector<std::thread> all;
  for (int t = 0; t < kThreads; ++t) {
    all.emplace_back([&client, t, from, to] {
      for (int i = from + t; i < to; i += kThreads) client.take(cat("fill/", i));
    });
  }
  for (std::thread& thread : all) thread.join();
}

std::vector<Curve> by_records(int largest) {
  const test::TempDir dir;
  Client client(cat("sqlite:", dir.file("scaling.db")));
  std::vector<Curve> out = {{"acquire", {}}, {"renew", {}}};
  int filled = 0;
  for (int records = 1000; records <= largest; records *= 10) {
    fill(client, filled, records);
    filled = records;
    std::vector<double> acquired;
    std::vector<double> renewed;
    for (int i = 0; i < 400; ++i) {
      std::optional<api::Grip> grip;
      acquired.push_back(1e6 *
                         seconds_of([&] { grip = client.take(cat("new/", records, "/", i)); }));
      renewed.push_back(1e6 * seconds_of([&] { client.renew(*grip); }));
    }
    const double x = records;
    out[0].points.push_back({x, spread_of(acquired).median});
    out[1].points.push_back({x, spread_of(renewed).median});
    std::printf("| sqlite | %d leases | acquire %.0f us, renew %.0f us |\n", records,
                out[0].points.back().y, out[1].points.back().y);
    std::fflush(stdout);
  }
  return out;
}

// ---- drawn

constexpr double kPanelWidth = 330;
constexpr double kPanelHeight = 220;
constexpr std::array kColours = {"#4878a8", "#2e7d32", "#b26a00", "#b03030", "#6a51a3"};

// Both axes by powers of ten.
class Panel {
 public:
  Panel(double left, std::string title, const std::vector<Curve>& curves)
      : left_(left), title_(std::move(title)), curves_(curves) {
    for (const Curve& curve : curves) {
      for (const Point& point : curve.points) {
        most_x_ = std::max(most_x_, point.x);
        least_x_ = std::min(least_x_, point.x);
        most_y_ = std::max(most_y_, point.y);
        least_y_ = std::min(least_y_, point.y);
      }
    }
    least_y_ = std::pow(10, std::floor(std::log10(least_y_)));
    most_y_ = std::pow(10, std::ceil(std::log10(most_y_)));
  }

  std::string svg() const {
    std::string out = text(left_, kTop - 18, "start", "#222222", title_);
    for (double y = least_y_; y <= most_y_ * 1.01; y *= 10) {
      out += cat("<line x1=\"", number(left_), "\" x2=\"", number(left_ + kPanelWidth), "\" y1=\"",
                 number(at_y(y)), "\" y2=\"", number(at_y(y)), "\" stroke=\"#dddddd\"/>\n");
      out += text(left_ - 6, at_y(y) + 4, "end", "#555555", short_number(y));
    }
    for (const Point& point : curves_.front().points) {
      out +=
          text(at_x(point.x), kTop + kPanelHeight + 16, "middle", "#555555", short_number(point.x));
    }
    for (std::size_t i = 0; i < curves_.size(); ++i) out += line(curves_[i], kColours.at(i), i);
    return out;
  }

  static constexpr double kTop = 70;

 private:
  std::string line(const Curve& curve, const char* colour, std::size_t index) const {
    std::string out =
        cat("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"", colour, "\" points=\"");
    for (const Point& one : curve.points) {
      out += cat(number(at_x(one.x)), ",", number(at_y(one.y)), " ");
    }
    out += "\"/>\n";
    const double row = kTop + kPanelHeight + 38 + 16 * static_cast<double>(index);
    return out + text(left_, row, "start", colour, curve.name);
  }
  double at_x(double x) const {
    return left_ + kPanelWidth * std::log(x / least_x_) / std::log(most_x_ / least_x_);
  }
  double at_y(double y) const {
    return kTop + kPanelHeight * (1 - std::log(y / least_y_) / std::log(most_y_ / least_y_));
  }
  static std::string number(double value) {
    std::array<char, 32> out{};
    std::snprintf(out.data(), out.size(), "%.1f", value);
    return out.data();
  }
  static std::string short_number(double value) {
    if (value >= 1e6) return cat(static_cast<std::int64_t>(value / 1e6), "M");
    if (value >= 1e3) return cat(static_cast<std::int64_t>(value / 1e3), "k");
    return std::to_string(static_cast<std::int64_t>(value));
  }
  static std::string text(double x, double y, const char* anchor, const char* colour,
                          const std::string& words) {
    return cat("<text x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"", anchor,
               "\" fill=\"", colour, "\">", words, "</text>\n");
  }

  double left_;
  std::string title_;
  const std::vector<Curve>& curves_;
  double least_x_ = 1e12;
  double most_x_ = 0;
  double least_y_ = 1e12;
  double most_y_ = 0;
};

std::string picture(const std::vector<Curve>& clients, const std::vector<Curve>& records) {
  constexpr double kLeft = 60;
  constexpr double kGap = 80;
  return cat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 420\" width=\"840\" "
      "height=\"420\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>How Stint "
      "scales</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      "<text x=\"20\" y=\"24\" font-size=\"14\" fill=\"#222222\">How Stint scales</text>\n",
      Panel(kLeft, "acquire + release, pairs a second, by clients", clients).svg(),
      Panel(kLeft + kPanelWidth + kGap, "microseconds a call, by leases in the store", records)
          .svg(),
      "</svg>\n");
}

int run(const std::string& file, int largest) {
  std::vector<Curve> clients;
  {
    const test::TempDir dir;
    clients.push_back(by_clients("sqlite, threads of one process", cat("sqlite:", dir.file("s.db")),
                                 Sharing::OneStore));
    clients.push_back(by_clients("shared directory", cat("dir:", dir.file("d")), Sharing::OneEach));
  }
  clients.push_back(by_clients_of<test::PostgresServer>("PostgreSQL"));
  clients.push_back(by_clients_of<test::RedisServer>("Redis, appendfsync always"));
  {
    test::EtcdCluster etcd;
    CHECK(etcd.start().has_value(), "no etcd");
    const std::string url = cat("etcd://", etcd.hosts());
    clients.push_back(by_clients("etcd, one node", url, Sharing::OneEach));
  }
  const std::vector<Curve> records = by_records(largest);
  std::ofstream out(file);
  out << picture(clients, records);
  return out.flush() ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return stint::bench::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 1'000'000);
}
