/// Which optimizer, with what constants. The formulas: docs/models.md.
#pragma once

#include <string>

namespace fluentps {

struct UpdateRuleOptions {
  std::string name = "sgd";         ///< sgd | momentum | nesterov | adam | lars
  double momentum = 0.9;            ///< of momentum, nesterov, lars
  double weight_decay = 0;          ///< beta: g + beta*w
  double trust_ratio = 0.001;       ///< eta of LARS (You et al. 2017)
  bool momentum_correction = true;  ///< lars: scale v by lr_new / lr_old; false: as printed in You et al.
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< adam
};

}  // namespace fluentps
