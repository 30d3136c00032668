// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include "pyrometer/sink.h"

namespace pyrometer {

// Where the end of a call came from.
enum class CallEnd {
  kNeverSent,  // the request was not handed to a connection
  kAlone,      // it was, but no status came: the library made one up
  kServer,     // the server's own status
};

// True of the codes that the library makes up when a connection breaks.
bool IsOfTrouble(const grpc::Status& status);

// True if the message is the library's own about a connection or stream that ended.
bool SpeaksOfConnection(const grpc::Status& status);

// What a call's failure means to a sink, as GrpcClient::Call says. REQUIRES: not OK.
Receipt ReceiptOf(const grpc::Status& status, CallEnd end);

}  // namespace pyrometer
