// Reads and writes .npy files.
#include "tapedeck/npy.h"

#include "core/format.h"
#include "core/host_view.h"
#include "io/npy_format.h"

namespace tapedeck {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(FileName name) : file_(std::move(name)) {}
  const FileName& name() const override { return file_.name(); }
  std::int64_t left() const override { return file_.size() - at_; }
  void read(void* to, std::int64_t n) override {
    file_.read(at_, to, n);
    at_ += n;
  }

 private:
  InputFile file_;
  std::int64_t at_ = 0;
};

}   // namespace

void save_npy(const std::string& path, const Tensor& x) {
  if (!x.defined()) throw_error<ArgumentError>("save_npy: {}: the tensor is undefined", path);
  const std::string header = npy_header("save_npy", x.spec());
  OutputFile file({"save_npy", path});
  file.write(header.data(), std::ssize(header));
  file.write(HostView<std::byte>(x, "save_npy").data(), x.nbytes());
  file.commit();
}

Tensor load_npy(const std::string& path) {
  FileSource source({"load_npy", path});
  return read_npy(source);
}

}   // namespace tapedeck
