// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "base/text.hpp"
#include "fabricast/diagnostic.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

TEST_CASE("UTF-8 is what RFC 3629 says: no overlong forms, surrogates, or characters above U+10FFFF") {
  for (const std::string good : {"a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                 "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CAPTURE(good);
    CHECK(utf8_character(good + "z") == good.size());
    CHECK(first_not_utf8(good) == std::string::npos);
  }
  for (const std::string bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2z", "\xE0\x80\x80", "\xE0\x9F\xBF",
                                "\xE1\x80", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
                                "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE1\x80z"}) {
    CAPTURE(bad);
    CHECK(utf8_character(bad) == 0);
    CHECK(first_not_utf8("ab" + bad) == 2);
    CHECK(printable("ab" + bad + "c").find("ab\xEF\xBF\xBD") == 0);
  }
  CHECK(utf8_character("") == 0);
}

TEST_CASE("what does something to a terminal is shown instead") {
  CHECK(printable("plain \xC3\xA9\xE2\x82\xAC") == "plain \xC3\xA9\xE2\x82\xAC");
  CHECK(printable("\x1b[31mred") == "\\x1b[31mred");
  CHECK(printable("a\nb\tc\rd") == "a\\x0ab\\x09c\\x0dd");
  CHECK(printable("a\nb\tc\rd\r\n", Keep::lines) == "a\nb\tc\\x0dd\r\n");
  CHECK(printable(std::string("\0", 1)) == "\\x00");
  CHECK(printable("\x7f") == "\\u007f");
  CHECK(printable("\xC2\x9B"
                  "31m") == "\\u009b31m");  // CSI in one character
  CHECK(printable("\xC2\xA0") == "\xC2\xA0");
  CHECK(printable("\xE2\x80\xAE") == "\\u202e");  // writes from right to left
  CHECK(printable("\xE2\x81\xA6\xE2\x81\xA9\xE2\x80\xA8") == "\\u2066\\u2069\\u2028");
  CHECK(printable("\xE2\x80\xA7\xE2\x80\xAF") == "\xE2\x80\xA7\xE2\x80\xAF");  // the neighbours of these
  CHECK(first_control("ab\x1b") == 2);
  CHECK(first_control("\xFF\x1b") == 1);
  CHECK(first_control("ab") == std::string::npos);
}

TEST_CASE(
    "whatever bytes come, what is printed is UTF-8 without control characters, and printing it again changes nothing") {
  test::Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (auto n = random.next(12); n > 0; --n) bytes.push_back(static_cast<char>(random.next(256)));
    for (const auto keep : {Keep::nothing, Keep::lines}) {
      const auto out = printable(bytes, keep);
      REQUIRE(first_not_utf8(out) == std::string::npos);
      REQUIRE(printable(out, keep) == out);
    }
    REQUIRE(first_control(printable(bytes)) == std::string::npos);
  }
}

TEST_CASE("a long line is cut around the column, between characters") {
  const std::string line(1000, 'x');
  const auto middle = excerpt_of(line, 500);
  CHECK(middle.text == "..." + std::string(160, 'x') + "...");
  CHECK(middle.column == 500 - 420 + 3);
  CHECK(excerpt_of(line, 1).text == std::string(160, 'x') + "...");
  CHECK(excerpt_of(line, 1).column == 1);
  CHECK(excerpt_of(line, 80).column == 80);
  CHECK(excerpt_of(line, 81).column == 83);
  CHECK(excerpt_of(line, 1000).text == "..." + std::string(80, 'x'));
  CHECK(excerpt_of("short", 3).text == "short");
  CHECK(excerpt_of("short", 3).column == 3);
  CHECK(excerpt_of(std::string(160, 'x'), 160).text.size() == 160);
  CHECK(excerpt_of(std::string(161, 'x'), 1).text.size() == 163);
  std::string wide;
  for (int i = 0; i < 400; ++i) wide += "\xE2\x82\xAC";
  for (int column = 1; column < 1200; ++column) {
    const auto cut = excerpt_of(wide, column);
    REQUIRE(first_not_utf8(cut.text) == std::string::npos);
    REQUIRE(cut.text.size() <= 170);
    REQUIRE(cut.column >= 1);
  }
}

TEST_CASE("a message shows its line with the caret below the column, and no control character of the input") {
  Diagnostic fault = make_error("unknown key 'a\x1b[2J'", "did you mean\n'b'?");
  fault.location = {"f\x07.yaml", 12, 3};
  fault.source_line = "a:\tb\x1b";
  CHECK(render(fault) ==
        "f\\x07.yaml:12:3: error: unknown key 'a\\x1b[2J'\n"
        "    12 | a: b?\n"
        "       |   ^\n"
        "       = note: did you mean\\x0a'b'?\n");
  fault.notes = {{"declared here", {"g.yaml", 4, 5}}};
  fault.severity = Severity::warning;
  fault.location.line = 0;
  CHECK(render(fault) == "f\\x07.yaml: warning: unknown key 'a\\x1b[2J'\ng.yaml:4:5: note: declared here\n");
  Diagnostic far;
  far.location = {"f.yaml", 1, 500};
  set_source_line(far, std::string(499, 'x') + "!" + std::string(499, 'x'));
  CHECK(far.source_line.size() == 166);
  const auto text = render(far);
  const auto caret = text.rfind('^') - (text.rfind('\n', text.rfind('^')) + 1);
  const auto mark = text.find('!') - (text.rfind('\n', text.find('!')) + 1);
  CHECK(caret == mark);
}

TEST_CASE("names near a word are at most max(2, a third) edits away, nearest first") {
  CHECK(nearest_name("bandwith", {"width", "bandwidth", "latency"}) == "bandwidth");
  CHECK(nearest_name("abcdefghi", {"abcdefxyz"}) == "abcdefxyz");  // 3 of 9
  CHECK(nearest_name("abcdefgh", {"abcdexyz"}).empty());           // 3 of 8: at most 2
  CHECK(nearest_name("ab", {"cd"}).empty());                       // nothing in common
  CHECK(near_names("node1", {"node3", "node2", "node12", "x"}, 2) == std::vector<std::string>{"node12", "node2"});
}

TEST_CASE("text in quotes reads back from YAML") {
  CHECK(yaml_quoted("a \"b\" \\ c") == "\"a \\\"b\\\" \\\\ c\"");
  CHECK(yaml_quoted("a\nb\x1b") == "\"a\\x0ab\\x1b\"");
}

TEST_CASE("values are printed with the unit that suits them") {
  CHECK(quantity_text(65536, Dimension::bytes, 3) == "64 KiB");
  CHECK(quantity_text(1.3e-6, Dimension::time, 3) == "1.30 us");
  CHECK(quantity_text(12.5e9, Dimension::bandwidth, 3) == "12.5 GB/s");
  CHECK(quantity_text(0.91234, Dimension::number, 3) == "0.912");
  CHECK(quantity_text(0.91234, Dimension::number, 2) == "0.91");
}
