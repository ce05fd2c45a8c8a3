// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"

#include <fmt/format.h>

#include <string_view>

#include "report/script.hpp"

namespace fabricast::report {

// Hues of equal weight, darker on white and lighter on black; every text keeps a contrast of 4.5 to 1 or more.
const char* const k_colour_style =
    ":root{color-scheme:light dark;--paper:#fff;--panel:#f7fafc;--ink:#1a202c;--soft:#4a5568;--line:#a0aec0;"
    "--grid:#e2e8f0;--rest:#cbd5e0;--bad:#c03020;--good:#2f855a;--c0:#2b6cb0;--c1:#c05621;--c2:#2f855a;--c3:#6b46c1;"
    "--c4:#b83280;--c5:#b7791f;--c6:#4a5568;--c7:#00838f;--c8:#9b2c2c;--c9:#5a67d8}\n"
    "@media (prefers-color-scheme:dark){:root{--paper:#11151c;--panel:#1a202c;--ink:#e2e8f0;--soft:#a0aec0;"
    "--line:#5d6b80;--grid:#2d3748;--rest:#4a5568;--bad:#fc8181;--good:#68d391;--c0:#63b3ed;--c1:#f6ad55;--c2:#68d391;"
    "--c3:#b794f4;--c4:#f687b3;--c5:#f6e05e;--c6:#cbd5e0;--c7:#4fd1c5;--c8:#fc8181;--c9:#a3bffa}}\n"
    ".frame{fill:var(--panel);stroke:var(--line)}.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}"
    ".tick{font-size:12px;fill:var(--soft)}.legend{font-size:13px;fill:var(--ink)}"
    ".band{fill:var(--c0);opacity:.2}.curve{fill:none;stroke:var(--c0);stroke-width:2}.dot{fill:var(--c0)}";

namespace {

constexpr const char* k_page_style =
    "*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;"
    "color:var(--ink);background:var(--paper);overflow-wrap:anywhere}"
    "h1{font-size:1.5rem;line-height:1.25;margin:0}h2{font-size:1.15rem;margin:1.8rem 0 "
    ".4rem}h3{font-size:1rem;margin:1.2rem 0 .3rem}"
    "details{margin:.4rem 0}summary{cursor:pointer;color:var(--soft)}"
    "p.sub{color:var(--soft);margin:.2rem 0 1rem}figure{margin:1rem 0}figcaption{color:var(--soft);margin:0 0 .3rem}"
    ".wide{overflow-x:auto}svg{display:block;width:100%;min-width:36rem;height:auto}"
    "pre{overflow-x:auto;overflow-wrap:normal;background:var(--panel);border:1px solid "
    "var(--grid);padding:.6rem;font-size:12px;margin:0}"
    "table{border-collapse:collapse;font-size:13px;overflow-wrap:normal}th,td{padding:.2rem .6rem;text-align:right;"
    "white-space:nowrap;border-bottom:1px solid var(--grid);font-variant-numeric:tabular-nums}"
    "th{color:var(--soft);font-weight:600}td.name,th.name{text-align:left}td.slower{color:var(--bad)}"
    "td.faster{color:var(--good)}li{margin:.15rem 0}code{font-size:12px}\n"
    "img.drawing{display:block;max-width:none;height:auto;background:#fff;zoom:.75}"
    "@media (max-width:40rem){body{margin:1rem auto;padding:0 .7rem}h1{font-size:1.25rem}}\n"
    "@media print{:root{color-scheme:light;--paper:#fff;--panel:#fff;--ink:#000;--soft:#333;--line:#888;--grid:#ddd;"
    "--rest:#bbb;--bad:#a00;--good:#060;--c0:#2b6cb0;--c1:#c05621;--c2:#2f855a;--c3:#6b46c1;--c4:#b83280;--c5:#b7791f;"
    "--c6:#4a5568;--c7:#00838f;--c8:#9b2c2c;--c9:#5a67d8}@page{margin:12mm}body{max-width:none;margin:0;padding:0;"
    "font-size:10pt}.wide,pre{overflow:visible}img.drawing{max-width:100%;zoom:1}svg{min-width:0;max-height:11cm}"
    "figure{break-inside:avoid}"
    "h2{break-after:avoid}pre{font-size:5.2pt;padding:0;border:0}table{font-size:8pt}tr{break-inside:avoid}}";

constexpr const char* k_live_style =
    ".live .u-legend{font-size:13px;color:var(--ink)}.live .u-title{display:none}.live p.note{min-height:1.5em;"
    "margin:.1rem 0;color:var(--soft);font-size:13px}.drawn .picture{display:none}\n"
    "@media print{.drawn .picture{display:block}.live{display:none}}";

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string colour(std::size_t index) { return fmt::format("var(--c{})", index % k_num_colours); }

std::string page(const std::string& title, const std::string& body) {
  const bool is_live = body.find("class=\"plotted\"") != std::string::npos;
  const auto style = is_live ? fmt::format("{}{}", plot_style(), k_live_style) : std::string();
  const auto script = is_live ? fmt::format("<script>{}</script>\n", plot_script()) : std::string();
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>Fabricast: "
      "{}</title>\n<style>{}\n{}\n{}</style></head><body>\n"
      "{}{}</body></html>\n",
      escaped(title), k_colour_style, k_page_style, style, body, script);
}

std::string image_of(const std::string& svg, const std::string& alt) {
  std::string encoded;
  for (const char c : svg) {
    const bool is_plain = c > 32 && c < 127 && std::string_view("%#\"'<>&").find(c) == std::string_view::npos;
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  // As large as its letters need; narrower screens scroll, paper shrinks it.
  return fmt::format("<div class=\"wide\"><img class=\"drawing\" alt=\"{}\" src=\"data:image/svg+xml,{}\"></div>",
                     escaped(alt), encoded);
}

std::string boxed(const std::string& caption, const std::string& content) {
  return fmt::format("<figure>{}<div class=\"wide\">\n{}</div></figure>\n",
                     caption.empty() ? "" : fmt::format("<figcaption>{}</figcaption>", escaped(caption)), content);
}

}  // namespace fabricast::report
