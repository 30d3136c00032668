// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls `callback`, which may call library_inner(): program, library, program, library.
void library_outer(void (*callback)(void));
void library_inner(void);
