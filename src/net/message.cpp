#include "net/message.hpp"

namespace fluentps {

std::string_view to_string(MessageKind kind) {
  switch (kind) {
    case MessageKind::kInit:
      return "init";
    case MessageKind::kPush:
      return "push";
    case MessageKind::kPull:
      return "pull";
    case MessageKind::kPullDone:
      return "pull-done";
    case MessageKind::kLeave:
      return "leave";
    case MessageKind::kAsk:
      return "ask";
    case MessageKind::kCredit:
      return "credit";
    case MessageKind::kGrant:
      return "grant";
    case MessageKind::kAck:
      return "ack";
    case MessageKind::kGo:
      return "go";
    case MessageKind::kCheckpoint:
      return "checkpoint";
    case MessageKind::kCheckpointed:
      return "checkpointed";
    case MessageKind::kStop:
      return "stop";
    case MessageKind::kMeet:
      return "meet";
    case MessageKind::kMet:
      return "met";
    case MessageKind::kPulled:
      return "pulled";
  }
  return "unknown message";
}

}  // namespace fluentps
