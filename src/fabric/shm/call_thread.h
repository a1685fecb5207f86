// The thread on which a daemon answers Calls. Handlers load and store lines, and so may have to wait for one
// whose writer has died; it is the control thread that completes those, so it must not be the one that waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fabric/memory/served_node.h"
#include "fabric/shm/served_client.h"

namespace farside::fabric::shm {

class CallThread {
 public:
  explicit CallThread(memory::ServedNode& node) : node_(node) {}
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;
  // Waits for the handler that runs; Calls that have not begun are dropped.
  ~CallThread();

  struct Job {
    std::shared_ptr<ShmServedClient> client;
    std::shared_ptr<Channel> channel;
    CallId call;
    std::string request;
  };
  // By one thread. Replies on the channel. The thread is started when it is first needed.
  void Post(Job job);

 private:
  void Run();
  void Answer(const Job& job);

  memory::ServedNode& node_;
  std::mutex mutex_;  // of what follows
  std::deque<Job> jobs_;
  bool closing_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace farside::fabric::shm
