// SPDX-License-Identifier: Apache-2.0
#include "config/unfused.hpp"

namespace fabricast::config {

void set_unfused_norm(NetworkLayer& layer, double elements) {
  layer.unfused_forward.residual = 2 * elements;
  layer.unfused_backward.residual = (3 + 2) * elements;
}

void set_unfused_residual(NetworkLayer& layer, double elements) {
  layer.unfused_forward.residual = 3 * elements;
  layer.unfused_backward = {.residual = 3 * elements, .autocasts = elements};
}

void set_unfused_activation(NetworkLayer& layer, double elements, bool is_gated) {
  layer.unfused_forward.elements = (is_gated ? 2 + 3 : 2) * elements;
  layer.unfused_backward.elements = (is_gated ? 3 + 3 + 3 : 3) * elements;
}

void set_unfused_loss(NetworkLayer& layer, double elements) {
  layer.unfused_forward = {.singles = 3 * elements, .casts = elements};
  layer.unfused_backward = {.singles = 5 * elements, .casts = elements};
}

void add_unfused_bias(NetworkLayer& layer) { layer.unfused_backward.elements += layer.output; }

void add_unfused_concatenation(NetworkLayer& layer) { layer.unfused_backward.elements += 2 * layer.output; }

void add_unfused_reader(NetworkLayer& layer, int reader) {
  const double elements = layer.rows * layer.inner;
  layer.unfused_forward.autocasts += elements;
  layer.unfused_backward.autocasts += elements;
  if (reader > 1) layer.unfused_backward.residual += 3 * elements;
}

void set_unfused_rotation(NetworkLayer& layer, double rotated, double repeated) {
  layer.unfused_forward = {.elements = repeated, .singles = 2 * rotated, .casts = 2 * rotated};
  layer.unfused_backward = layer.unfused_forward;
  layer.operators += repeated > 0 ? 8 : 6;
}

}  // namespace fabricast::config
