// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>

#include "base/sha256.hpp"
#include "fabricast/diagnostic.hpp"
#include "fabricast/units.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

TEST_CASE("quantities are read in SI and binary units") {
  const auto value = [](const char* text, Dimension dimension) {
    const auto parsed = parse_quantity(text, dimension);
    CAPTURE(text);
    CAPTURE(parsed.error);
    CHECK(parsed.ok);
    return parsed.value;
  };
  CHECK(value("100 Gb/s", Dimension::bandwidth) == 12.5e9);
  CHECK(value("100Gb/s", Dimension::bandwidth) == 12.5e9);
  CHECK(value("100 Gbps", Dimension::bandwidth) == 12.5e9);
  CHECK(value("12.5 GB/s", Dimension::bandwidth) == 12.5e9);
  CHECK(value("1 GiB/s", Dimension::bandwidth) == 1073741824.0);
  CHECK(value("1.3 us", Dimension::time) == test::approx(1.3e-6));
  CHECK(value("130 ns", Dimension::time) == test::approx(130e-9));
  CHECK(value("2 \xC2\xB5s", Dimension::time) == test::approx(2e-6));
  CHECK(value("64 KiB", Dimension::bytes) == 65536);
  CHECK(value("1 MB", Dimension::bytes) == 1e6);
  CHECK(value("0", Dimension::bytes) == 0);
  CHECK(value("0.91", Dimension::number) == 0.91);
}

TEST_CASE("ambiguous and incomplete quantities are refused with the readings they may have") {
  const auto refused = [](const char* text, Dimension dimension) {
    const auto parsed = parse_quantity(text, dimension);
    CAPTURE(text);
    CHECK_FALSE(parsed.ok);
    return parsed.error + " | " + parsed.hint;
  };
  CHECK(refused("400", Dimension::bandwidth) ==
        "'400' has no unit, a bandwidth needs one | write '100 Gb/s' or '12.5 GB/s'");
  CHECK(refused("400 GBps", Dimension::bandwidth) ==
        "'400 GBps' has the unknown unit 'GBps' | write '400 GB/s' for bytes or '400 Gb/s' for bits");
  CHECK(refused("400 gb/s", Dimension::bandwidth) ==
        "'400 gb/s' has the unknown unit 'gb/s' | write '400 GB/s' for bytes or '400 Gb/s' for bits");
  CHECK(refused("4 KB", Dimension::bytes) ==
        "'4 KB' has the unknown unit 'KB' | write '4 KiB' for powers of 1024 or '4 kB' for powers of 1000");
  CHECK(refused("4K", Dimension::bytes) ==
        "'4K' has the unknown unit 'K' | write '4 KiB' for powers of 1024 or '4 kB' for powers of 1000");
  CHECK(refused("8 GT/s", Dimension::bandwidth) ==
        "'8 GT/s' has the unknown unit 'GT/s' | PCIe speed is given as generation and lanes: `pcie: gen3 x16`");
  CHECK(refused("64 KiB", Dimension::time) == "'64 KiB' is a size, a time is expected | write '1.3 us' or '130 ns'");
  CHECK(refused("-1 us", Dimension::time) == "'-1 us' is negative, a time is not | ");
  for (const auto* text : {"", "fast", "nan", "inf", "1e400 B", "1e30 B", "1  KiB", "1 KiB x", "0x10 B"})
    refused(text, Dimension::bytes);
  refused("3 us", Dimension::number);
}

TEST_CASE("what is printed for people reads back as the same quantity, to three digits") {
  CHECK(to_string(64_KiB) == "64 KiB");
  CHECK(to_string(0_B) == "0 B");
  CHECK(to_string(30000_B) == "30000 B");
  CHECK(to_string(1_GiB) == "1 GiB");
  CHECK(to_string(1.3_us) == "1.30 us");
  CHECK(to_string(Duration{999}) == "999 ps");
  CHECK(to_string(12_ms) == "12.0 ms");
  CHECK(to_string(100_Gbps) == "12.5 GB/s");
}

TEST_CASE("a transfer never takes less than its bytes need, and a dead link takes for ever") {
  CHECK(transfer_time(1_B, 12.5_GBps).ps == 80);
  CHECK(transfer_time(1_B, Bandwidth{3e9}).ps == 334);  // 333.3 ps rounded up
  CHECK(transfer_time(1_GiB, 100_Gbps).seconds() == test::approx(1073741824 / 12.5e9));
  CHECK(transfer_time(1_B, Bandwidth{0}).ps == std::numeric_limits<std::int64_t>::max());
  CHECK(transfer_time(Bytes{std::numeric_limits<std::int64_t>::max()}, Bandwidth{1}).ps ==
        std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("a diagnostic shows place, line, caret and notes as a compiler does") {
  Diagnostic one = make_error("unknown key 'bandwith' in a link", "did you mean 'bandwidth'?");
  one.location = {"fat.yaml", 6, 5};
  one.source_line = "    bandwith: 400 Gb/s";
  one.notes.push_back({"'leaf7' is declared here", {"fat.yaml", 2, 3}});
  CHECK(render(one) ==
        "fat.yaml:6:5: error: unknown key 'bandwith' in a link\n"
        "    6 |     bandwith: 400 Gb/s\n"
        "      |     ^\n"
        "      = note: did you mean 'bandwidth'?\n"
        "fat.yaml:2:3: note: 'leaf7' is declared here\n");
  one.source_line = std::string(500, 'x');
  one.location.column = 300;
  CHECK(render(one).find("...xxx") != std::string::npos);
  CHECK(render(one).size() < 500);
}

TEST_CASE("the nearest name is found within a third of the word, never the word itself nor something far") {
  const std::vector<std::string> names{"bandwidth", "latency", "mtu", "gpus"};
  CHECK(nearest_name("bandwith", names) == "bandwidth");
  CHECK(nearest_name("gpu", names) == "gpus");
  CHECK(nearest_name("colour", names).empty());
  CHECK(near_names("ltency", {"latency", "latencz", "x"}) == std::vector<std::string>{"latency", "latencz"});
}

TEST_CASE("SHA-256 gives the digests of the standard's examples") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256(std::string(1000, 'a')) == "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}
