/// Owner of one HDF5 identifier.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

#include "trace/hdf5_error.hpp"

namespace fluentps::trace {

class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  /// Takes over what `call` returned; throws Hdf5Error where that is no identifier.
  Handle(hid_t id, Close close, const char* call, const std::string& path)
      : id_(check_hdf5(id, call, path)), close_(close) {}
  /// A borrowed or failed identifier is the caller's affair: no check.
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
      close_ = other.close_;
    }
    return *this;
  }
  ~Handle() { reset(); }

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// Closes now; returns what the close function says.
  herr_t reset() {
    if (id_ < 0) return 0;
    return close_(std::exchange(id_, H5I_INVALID_HID));
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

}  // namespace fluentps::trace
