// The interactive page of `sluice plan --html`: plans on a grid of loads, and what shows them.
#pragma once

#include <string>
#include <vector>

#include "app/report.h"
#include "plan/hardware.h"
#include "plan/search.h"

namespace sluice {

/// What the page offers and what it shows first.
struct PageQuestion {
  std::string model;               // shown first, next to the main ones of the catalogue
  std::vector<Hardware> hardware;  // offered; empty: all that is known
  std::string weights;             // shown first: a name of weight_format(), or as published
  Demand demand{};                 // load and draft are shown first, the rest holds for all
};

/// One HTML file that needs no other. Computes on as many threads as there are cores, at most 8.
std::string plan_page(const PageQuestion& question, Progress& progress);

}  // namespace sluice
