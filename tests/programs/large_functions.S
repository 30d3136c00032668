// SPDX-License-Identifier: Apache-2.0
// As many described functions as the largest libraries that people run have: half of them near, half
// as far away as their code reaches.
  .macro FUNCTIONS count
  .rept \count
  .cfi_startproc
  push %rbx
  .cfi_def_cfa_offset 16
  .cfi_offset %rbx, -16
  push %rbp
  .cfi_def_cfa_offset 24
  .cfi_offset %rbp, -24
  push %r12
  .cfi_def_cfa_offset 32
  .cfi_offset %r12, -32
  pop %r12
  .cfi_def_cfa_offset 24
  pop %rbp
  .cfi_def_cfa_offset 16
  pop %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .balign 64
  .endr
  .endm

  .text
  FUNCTIONS 244000
  .section .far_text, "ax", @progbits
  FUNCTIONS 245000
  .section .note.GNU-stack, "", @progbits
