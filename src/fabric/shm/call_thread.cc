#include "fabric/shm/call_thread.h"

#include <utility>

#include <fmt/format.h>

namespace farside::fabric::shm {

CallThread::~CallThread() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CallThread::Post(Job job) {
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
}

void CallThread::Run() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (jobs_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Answer(job);
    lock.lock();
  }
}

void CallThread::Answer(const Job& job) {
  if (!job.client->BeginCall()) {
    return job.channel->Reply(
        ToWire(ErrorCode::kFenced),
        fmt::format("client {} was fenced; connect again as a new client", Number(job.client->id())));
  }
  const Result<std::string> reply = node_.Call(job.call, job.client->id(), job.request);
  job.client->EndCall();
  if (!reply.ok()) {
    return job.channel->Reply(ToWire(reply.error().code()),
                              std::string_view(reply.error().message()).substr(0, kMaxPayload));
  }
  if (reply->size() > kMaxPayload) {
    return job.channel->Reply(ToWire(ErrorCode::kOutcomeUnknown),
                              "the reply of the node is too long to be sent; what was called has happened");
  }
  job.channel->Reply(kWireOk, *reply);
}

}  // namespace farside::fabric::shm
