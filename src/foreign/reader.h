// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/message_socket.h"
#include "foreign/indexer.h"
#include "foreign/sandbox.h"

namespace pyrometer {

// Closes `sandbox` and then does what it is asked for, until the other end of `socket` is closed:
// see reader_messages.h. A task that takes more memory than it may fails, and the process ends with
// it; so does one that takes more CPU time. REQUIRES: a process of its own, with one thread.
void ServeReader(MessageSocket socket, Sandbox& sandbox, Indexer& indexer);

}  // namespace pyrometer
