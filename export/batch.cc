#include "export/batch.h"

namespace profd::exporting {

void BatchBuilder::Flush() {
  if (size_ == 0) return;
  sink_.Take({&table_, device_, {timestamps_.data(), size_}, cells_.get(), kRows});
  total_ += size_;
  size_ = 0;
}

}  // namespace profd::exporting
