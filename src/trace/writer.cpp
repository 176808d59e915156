/// The tables of workers and servers.
#include "trace/writer.hpp"

#include "trace/rank_file.hpp"

namespace fluentps::trace {
namespace {

template <typename... Rows>
std::unique_ptr<RankFile> make_file(const WriterOptions& options) {
  quiet_hdf5();
  std::vector<TableBuffer> tables;
  (tables.push_back(TableBuffer::of<Rows>(options.path)), ...);
  return std::make_unique<RankFile>(options, std::move(tables));
}

enum WorkerTable : std::size_t { kIterations, kWorkerPulls, kEvaluations };
enum ServerTable : std::size_t { kPushes, kServerPulls, kAdvances };

}  // namespace

WorkerTrace::WorkerTrace(const WriterOptions& options)
    : file_(make_file<IterationRow, WorkerPullRow, EvaluationRow>(options)) {}
WorkerTrace::~WorkerTrace() = default;
void WorkerTrace::add(const IterationRow& row) { file_->add(kIterations, row); }
void WorkerTrace::add(const WorkerPullRow& row) { file_->add(kWorkerPulls, row); }
void WorkerTrace::add(const EvaluationRow& row) { file_->add(kEvaluations, row); }
void WorkerTrace::maybe_flush(std::int64_t now_ns) { file_->maybe_flush(now_ns); }
void WorkerTrace::flush() { file_->flush(); }
void WorkerTrace::close() { file_->close(); }

ServerTrace::ServerTrace(const WriterOptions& options)
    : file_(make_file<PushRow, ServerPullRow, AdvanceRow>(options)) {}
ServerTrace::~ServerTrace() = default;
void ServerTrace::add(const PushRow& row) { file_->add(kPushes, row); }
void ServerTrace::add(const ServerPullRow& row) { file_->add(kServerPulls, row); }
void ServerTrace::add(const AdvanceRow& row) { file_->add(kAdvances, row); }
void ServerTrace::maybe_flush(std::int64_t now_ns) { file_->maybe_flush(now_ns); }
void ServerTrace::flush() { file_->flush(); }
void ServerTrace::close() { file_->close(); }

}  // namespace fluentps::trace
