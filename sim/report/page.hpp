// SPDX-License-Identifier: Apache-2.0
// What every HTML page of ours shares: one file, nothing to fetch, readable without script; light and dark, desktop,
// phone and paper.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace fabricast::report {

/// Text as HTML and SVG show it.
std::string escaped(const std::string& text);

/// A whole page around `body`; with the script of live plots when it has any.
std::string page(const std::string& title, const std::string& body);

/// A stand-alone SVG file inside a page: its style must not reach the page's own elements.
std::string image_of(const std::string& svg, const std::string& alt);

/// A caption and a picture or table that scrolls sideways in its own box when the screen is narrow.
std::string boxed(const std::string& caption, const std::string& content);

/// The colours of curves and terms as CSS variables and classes, for pages and for SVG files that stand alone.
extern const char* const k_colour_style;

/// Number of different colours; curve k has the class or variable of k modulo this.
constexpr std::size_t k_num_colours = 10;

/// "var(--c3)"
std::string colour(std::size_t index);

}  // namespace fabricast::report
